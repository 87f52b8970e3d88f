-- adopted_view: a materialized view by name: its schema, name, query, and about how many rows it has. Run as its owner.
select n.nspname, c.relname, pgtrickle_internal.canonical_of(c.oid), greatest(c.reltuples, 0)::bigint
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = pgtrickle_internal.materialized_view(%(name)s)
