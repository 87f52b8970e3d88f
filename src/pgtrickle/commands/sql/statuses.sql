-- statuses: one row for each stream table: its definition and its current state.
-- Parameter `name`: one stream table, or null for all. Every role may run it.
with waiting as (
    select b.stream_table, sum(b.pending_rows)::bigint as pending_rows
    from pgtrickle.change_buffer_sizes() b
    group by b.stream_table
)
select i.pgt_schema, i.pgt_name, i.owner, i.defining_query, s.sources, i.schedule, i.refresh_tier, i.refresh_mode,
    i.effective_refresh_mode, i.downgrade_reason, i.status, i.is_populated, i.data_timestamp,
    extract(epoch from clock_timestamp() - i.data_timestamp)::float8, w.pending_rows, i.last_refresh_at,
    h.action, h.duration_ms, i.consecutive_errors, i.last_error, i.retry_at,
    coalesce(pgtrickle.waits_for(i.pgt_id),
        case when i.effective_refresh_mode <> 'FULL' then pgtrickle_internal.waits_for_spark() end),
    i.refresh_timeout, i.on_divergence, i.repairs, i.last_repair_at
from pgtrickle.stream_tables_info i
left join waiting w on w.stream_table = pg_catalog.format('%%I.%%I', i.pgt_schema, i.pgt_name)
cross join lateral (
    select coalesce(pg_catalog.array_agg(pg_catalog.format('%%I.%%I', d.source_schema, d.source_name)
        order by d.source_schema, d.source_name), '{}') as sources
    from pgtrickle.pgt_dependencies d
    where d.pgt_id = i.pgt_id and d.source_type <> 'function'
) s
left join lateral (
    select v.action, v.duration_ms from pgtrickle.visible_history v
    where v.pgt_id = i.pgt_id and v.status = 'COMPLETED'
    order by v.refresh_id desc limit 1
) h on true
where %(name)s::text is null or i.pgt_id = pgtrickle_internal.find_stream_table(%(name)s)
order by i.pgt_schema, i.pgt_name
