-- graph: every stream table with what it reads, views and functions left out: what they read is listed itself.
select i.pgt_schema, i.pgt_name, d.source_schema, d.source_name, d.source_type
from pgtrickle.pgt_dependencies d join pgtrickle.stream_tables_info i on i.pgt_id = d.pgt_id
where d.source_type not in ('view', 'function')
order by 1, 2, 3, 4
