-- buffer_sizes: the bytes of the change buffers of each source, largest first.
-- Reads: pg_class, and the sizes of files.  Locks: each buffer for a moment.
select s.source_relid::bigint as source, format('%I.%I', n.nspname, c.relname) as name, b.bytes
from (
    select substring(k.relname from '^changes_([0-9]+)_[01]$')::oid as source_relid,
        sum(pg_relation_size(k.oid))::bigint as bytes
    from pg_class k
    where k.relnamespace = 'pgtrickle_changes'::regnamespace and k.relkind = 'r' and k.relname ~ '^changes_[0-9]+_[01]$'
    group by 1
) b
join pgtrickle.pgt_sources s on s.source_relid = b.source_relid
join pg_class c on c.oid = s.source_relid
join pg_namespace n on n.oid = c.relnamespace
order by b.bytes desc, s.source_relid
