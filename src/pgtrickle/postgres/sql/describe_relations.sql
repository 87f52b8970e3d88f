-- describe_relations: names, kinds, copies, keys and indexes of tables.
-- Parameter: the ids of the tables. A `copy` is read instead of its table, so its indexes are returned. Only a role
-- that may use the copies sees them.
-- `keys` are unique and not null. `indexes` are those that a lookup can use: valid, not partial, btree or hash,
-- an expression as its text. A dropped relation has no row.
select c.oid::bigint, n.nspname, c.relname,
    case when c.relkind = 'm' then 'materialized_view' when c.relkind = 'f' then 'foreign_table'
        when exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = c.oid) then 'stream_table'
        else 'table' end,
    row_security_active(c.oid),
    (
        select array[n.nspname, k.relname]::text[] from pg_class k join pg_namespace n on n.oid = k.relnamespace
        where k.oid = copied.id
    ),
    (
        select coalesce(jsonb_agg(k.names order by i.indisprimary desc, i.indexrelid), '[]')
        from pg_index i cross join lateral (
            select jsonb_agg(a.attname order by part.position) as names, bool_and(a.attnotnull) as is_key
            from unnest(i.indkey::smallint[]) with ordinality as part(number, position)
            join pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
            where part.position <= i.indnkeyatts) k
        where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
            -- children of a table that is not partitioned may repeat its keys
            and (c.relkind = 'p' or not exists (select from pg_inherits h where h.inhparent = c.oid))
            and 0 <> all (i.indkey::smallint[]) and k.is_key
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
    select case when c.relkind in ('m', 'f')
        and (select has_schema_privilege(p.oid, 'USAGE') from pg_namespace p where p.nspname = 'pgtrickle_state')
        then to_regclass(pgtrickle_internal.copy_of(c.oid))::oid end) copied(id)
where c.oid = any (%s::oid[])
