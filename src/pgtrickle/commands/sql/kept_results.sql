-- kept_results: the inner results that are kept of a stream table, with their rows and size, state included.
-- Parameter `id`: the stream table.  Locks: nothing.
select n.nspname || '.' || c.relname, greatest(c.reltuples, 0)::bigint,
    pg_size_pretty(pg_total_relation_size(c.oid) + coalesce(pg_total_relation_size(s.oid), 0))
from pg_class c join pg_namespace n on n.oid = c.relnamespace
left join pg_class s on s.relnamespace = n.oid and s.relname = replace(c.relname, 'auxiliary_', 'state_')
where n.nspname = 'pgtrickle_state' and c.relkind = 'r' and c.relname ~ format('^auxiliary_%%s_[0-9]+$', %(id)s::bigint)
order by c.relname
