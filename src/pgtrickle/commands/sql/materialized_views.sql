-- materialized_views: every materialized view of the database: its name, owner, size and query. Every role may run it.
select n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner), c.relispopulated, greatest(c.reltuples, 0)::bigint,
    pg_catalog.pg_total_relation_size(c.oid), pg_catalog.pg_get_viewdef(c.oid), c.relowner = quote_ident(current_user)::regrole
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'm' and n.nspname !~ '^(pg_|pgtrickle($|_))'
order by 6 desc, 1, 2
