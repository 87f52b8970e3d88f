-- query_sources: the query of a view as PostgreSQL prints it, the tables that it reads, and the views below it.
select pgtrickle_internal.canonical_of(%(view)s::oid),
    coalesce(array_agg(distinct c.oid::bigint) filter (where c.relkind <> 'v'), '{}'),
    coalesce(array_agg(distinct c.oid::bigint) filter (where c.relkind = 'v'), '{}')
from pgtrickle_internal.relations_of(%(view)s::oid, 0) r join pg_catalog.pg_class c on c.oid = r.relation_id
