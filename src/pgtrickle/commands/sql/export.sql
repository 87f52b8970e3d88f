-- export: every stream table with its owner and options, those that are read before their readers.
-- The last columns are the arguments of create_stream_table, in the order of `_OPTIONS` in commands/export.py.
with recursive depths(pgt_id, depth) as (
    select s.pgt_id, 0 from pgtrickle.pgt_stream_tables s
    union
    select d.pgt_id, u.depth + 1 from depths u
    join pgtrickle.pgt_stream_tables s on s.pgt_id = u.pgt_id
    join pgtrickle.pgt_dependencies d on d.source_relid = s.pgt_relid and d.source_type = 'stream_table'
)
select i.pgt_schema, i.pgt_name, i.owner, i.status, s.settings, i.defining_query, i.schedule, i.refresh_mode,
    s.initialize, s.diamond_consistency, s.diamond_schedule_policy, s.cdc_mode, s.append_only,
    s.pooler_compatibility_mode, s.refresh_tier,
    case s.refresh_timeout when 0 then 'none' else s.refresh_timeout::text end, s.on_divergence, s.keep_changes,
    s.auxiliary_results
from pgtrickle.stream_tables_info i join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id
order by (select max(d.depth) from depths d where d.pgt_id = s.pgt_id), s.pgt_id
