-- complete_stream_tables: the names of all stream tables, as SQL writes them; those on the search_path also without
-- their schema. Runs under the search_path of the login, so every name and operator has its schema.
select n.name
from pgtrickle.pgt_stream_tables s
cross join lateral (
    select pg_catalog.format('%I', s.pgt_name) where pg_catalog.pg_table_is_visible(s.pgt_relid)
    union all
    select pg_catalog.format('%I.%I', s.pgt_schema, s.pgt_name)
) n(name)
order by n.name using operator(pg_catalog.<)
