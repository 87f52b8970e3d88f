-- rows_to_load: the planner's estimate of the rows in all tables that the stream table `id` reads;
-- null if the stream table is loaded already, or if a table was never analysed.
select case when bool_and(c.reltuples >= 0) then sum(c.reltuples)::bigint end
from pgtrickle.stream_tables_info i
join pgtrickle.pgt_dependencies d on d.pgt_id = i.pgt_id and d.source_type in ('table', 'stream_table')
join pg_class c on c.oid in (select pgtrickle_internal.tree_of(d.source_relid)) and c.relkind = 'r'
where i.pgt_id = %(id)s and not i.is_populated
