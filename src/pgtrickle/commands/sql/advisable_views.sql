-- advisable_views: the populated materialized views of the current role. Their queries are planned as this role, and
-- planning can run functions of the query: those of other roles must not run with our rights.
select n.nspname as schema, c.relname as name, pgtrickle_internal.canonical_of(c.oid) as query,
    greatest(c.reltuples, 0)::bigint as rows
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'm' and c.relispopulated and c.relowner = quote_ident(current_user)::pg_catalog.regrole
    and n.nspname !~ '^pg_'
order by 1, 2
