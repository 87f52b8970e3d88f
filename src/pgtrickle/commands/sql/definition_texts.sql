-- definition_texts: the definition of every stream table as a statement, those that are read before their readers.
with recursive depths(pgt_id, depth) as (
    select s.pgt_id, 0 from pgtrickle.pgt_stream_tables s
    union
    select d.pgt_id, u.depth + 1 from depths u
    join pgtrickle.pgt_stream_tables s on s.pgt_id = u.pgt_id
    join pgtrickle.pgt_dependencies d on d.source_relid = s.pgt_relid and d.source_type = 'stream_table'
)
select pgtrickle_internal.shown_name(s.pgt_id), pgtrickle_internal.definition_text(s.pgt_id)
from pgtrickle.pgt_stream_tables s
order by (select max(d.depth) from depths d where d.pgt_id = s.pgt_id), 1
