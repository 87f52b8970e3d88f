-- table_readers: the views and materialized views that read a stream table, by the dependencies of their rules.
select distinct i.pgt_schema, i.pgt_name, n.nspname, c.relname,
    case c.relkind when 'm' then 'materialized_view' else 'view' end
from pgtrickle.stream_tables_info i
join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id
join pg_catalog.pg_depend d on d.refobjid = s.pgt_relid and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    and d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
join pg_catalog.pg_rewrite r on r.oid = d.objid
join pg_catalog.pg_class c on c.oid = r.ev_class and c.relkind in ('v', 'm')
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname !~ '^pgtrickle(_|$)'
order by 1, 2, 3, 4
