-- relation_of: the schema, the name, the OID and the columns of the table behind a stream table, as they are now.
select n.nspname, c.relname, c.oid,
    array(select array[a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)]
        from pg_catalog.pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum)
from pgtrickle.pgt_stream_tables s
join pg_catalog.pg_class c on c.oid = s.pgt_relid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where s.pgt_id = pgtrickle_internal.find_stream_table(%(name)s) and c.relkind in ('r', 'p')
