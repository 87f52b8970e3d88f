-- capture: every pair of a source and a stream table that reads it: how changes are captured and how many wait.
-- `triggers_ok` is null for a source without triggers.
with triggers as (
    select t.source_oid, bool_and(t.is_present and t.is_enabled) as are_ok
    from pgtrickle.trigger_inventory() t group by t.source_oid
), gates as (
    select g.source_oid from pgtrickle.gated_sources() g
)
select b.source_table, d.source_type, b.cdc_mode, b.pending_rows, b.buffer_bytes, b.stream_table,
    extract(epoch from i.staleness)::float8, t.are_ok, exists (select from gates g where g.source_oid = b.source_oid)
from pgtrickle.change_buffer_sizes() b
join pgtrickle.stream_tables_info i on b.stream_table = pg_catalog.format('%%I.%%I', i.pgt_schema, i.pgt_name)
left join lateral (
    select min(p.source_type) as source_type from pgtrickle.pgt_dependencies p
    where p.pgt_id = i.pgt_id and p.source_relid = b.source_oid) d on true
left join triggers t on t.source_oid = b.source_oid
order by b.source_table, b.stream_table
