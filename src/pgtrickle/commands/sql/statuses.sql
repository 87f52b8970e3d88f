-- statuses: one row for each stream table: its definition and its current state.
-- Parameter `name`: one stream table, or null for all. Every role may run it.
-- What costs a call for each row is asked once for all of them, or only if it can matter.
with asked as materialized (
    select case when %(name)s::text is not null then array[pgtrickle_internal.find_stream_table(%(name)s)] end as ids
), service as materialized (
    select pgtrickle_internal.waits_for_sidecar() as missing, pgtrickle_internal.waits_for_spark() as spark,
        pgtrickle.is_copy() or exists (select from pgtrickle.pgt_drain) or exists (select from pgtrickle.pgt_gates)
            or exists (select from pgtrickle.pgt_waiting) as has_obstacles
), paced as materialized (
    -- that stream tables wait because their sidecars have used their share of the CPU, in words
    select pg_catalog.format('paced: %%s s', min((i.vitals ->> 'paced_seconds')::numeric)) as words
    from pgtrickle.server_worker_inventory i where i.is_alive and i.is_here
    having bool_and((i.vitals ->> 'paced_seconds')::numeric > 0)
), waiting as (
    select p.pgt_id, sum(p.pending_rows)::bigint as pending_rows
    from asked a cross join pgtrickle_internal.pending_counts(a.ids) p
    group by p.pgt_id
), sources as (
    select d.pgt_id, pg_catalog.array_agg(pg_catalog.format('%%I.%%I', d.source_schema, d.source_name)
        order by d.source_schema, d.source_name) as names
    from pgtrickle.pgt_dependencies d
    where d.source_type <> 'function'
    group by d.pgt_id
)
select i.pgt_schema, i.pgt_name, i.owner, i.defining_query, coalesce(s.names, '{}'), i.schedule, i.refresh_tier,
    i.refresh_mode, i.effective_refresh_mode, i.downgrade_reason, i.status, i.is_populated, f.shown_until,
    extract(epoch from pgtrickle_internal.snapshot_time() - f.shown_until)::float8, w.pending_rows, i.last_refresh_at,
    h.action, h.duration_ms, i.consecutive_errors, i.last_error, i.retry_at,
    coalesce(case when v.has_obstacles then pgtrickle.waits_for(i.pgt_id) end,
        case when i.effective_refresh_mode <> 'FULL' then v.spark end, v.missing,
        case when i.schedule = 'calculated' and w.pending_rows > 0 then (select p.words from paced p) end),
    i.refresh_timeout, i.on_divergence, i.repairs, i.last_repair_at, i.keep_changes
from asked a
cross join service v
join pgtrickle.stream_tables_info i on a.ids is null or i.pgt_id = any (a.ids)
left join pgtrickle_internal.shown_times(a.ids) f on f.pgt_id = i.pgt_id
left join waiting w on w.pgt_id = i.pgt_id
left join sources s on s.pgt_id = i.pgt_id
left join lateral (
    select p.action, p.duration_ms from pgtrickle.pgt_refresh_history p
    where p.pgt_id = i.pgt_id and p.status = 'COMPLETED'
    order by p.refresh_id desc limit 1
) h on true
order by i.pgt_schema, i.pgt_name
