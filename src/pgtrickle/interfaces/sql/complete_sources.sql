-- complete_sources: the same for the tables that stream tables read.
select n.name
from (
    select distinct d.source_relid, d.source_schema, d.source_name from pgtrickle.pgt_dependencies d
    where d.source_type operator(pg_catalog.<>) all (array['view', 'function'])
) s
cross join lateral (
    select pg_catalog.format('%I', s.source_name) where pg_catalog.pg_table_is_visible(s.source_relid)
    union all
    select pg_catalog.format('%I.%I', s.source_schema, s.source_name)
) n(name)
order by n.name using operator(pg_catalog.<)
