-- describe_relations: names, kinds, copies, keys and indexes of tables.
-- Parameter: the ids of the tables. A `copy` is read instead of its table, so its indexes are returned. Only a role
-- that may use the copies sees them.
-- `keys` are unique and not null. `indexes` are those that a lookup can use: valid, not partial, btree or hash,
-- an expression as its text. A dropped relation has no row.
select c.oid::bigint, n.nspname, c.relname,
    case when pgtrickle_internal.is_attached(c.oid) then 'attached_table' when c.relkind = 'm' then 'materialized_view' when c.relkind = 'f' then 'foreign_table'
        when exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = c.oid) then 'stream_table'
        else 'table' end,
    row_security_active(c.oid),
    (
        select array[n.nspname, k.relname]::text[] from pg_class k join pg_namespace n on n.oid = k.relnamespace
        where k.oid = copied.id
    ),
    (
        select coalesce(jsonb_agg(to_jsonb(k.column_names) order by k.is_primary desc, k.index_id), '[]')
        from pgtrickle_internal.unique_keys(c.oid) k
    ),
    (
        select coalesce(jsonb_agg(k.names order by i.indexrelid), '[]')
        from pg_index i
        join pg_class x on x.oid = i.indexrelid
        join pg_am m on m.oid = x.relam and m.amname in ('btree', 'hash')
        cross join lateral (
            select jsonb_agg(coalesce(a.attname, pg_get_indexdef(i.indexrelid, part.position::int, true))
                order by part.position) as names
            from unnest(i.indkey::smallint[]) with ordinality as part(number, position)
            left join pg_attribute a
                on a.attrelid = i.indrelid and a.attnum = part.number and part.number <> 0
            where part.position <= i.indnkeyatts) k
        where i.indrelid = coalesce(copied.id, c.oid) and i.indisvalid and i.indpred is null
    )
from pg_class c join pg_namespace n on n.oid = c.relnamespace
cross join lateral (
    select case when (c.relkind in ('m', 'f') or pgtrickle_internal.is_attached(c.oid))
        and (select has_schema_privilege(p.oid, 'USAGE') from pg_namespace p where p.nspname = 'pgtrickle_state')
        then to_regclass(pgtrickle_internal.copy_of(c.oid))::oid end) copied(id)
where c.oid = any (%s::oid[])
