-- activity: one row for each stream table: its state, and what its refreshes did lately. Every role may run it.
-- Parameter `seconds`: how far back refreshes are counted, among the newest 5,000.
with service as materialized (
    select pgtrickle_internal.waits_for_sidecar() as missing, pgtrickle_internal.waits_for_spark() as spark
), paced as materialized (
    -- that stream tables wait because their sidecars have used their share of the CPU, in words
    select pg_catalog.format('paced: %%s s', min((i.vitals ->> 'paced_seconds')::numeric)) as words
    from pgtrickle.server_worker_inventory i where i.is_alive and i.is_here
    having bool_and((i.vitals ->> 'paced_seconds')::numeric > 0)
), recent as (
    select r.pgt_id, count(*)::float8 / %(seconds)s as per_second
    from (
        select h.pgt_id, h.end_time from pgtrickle.pgt_refresh_history h order by h.refresh_id desc limit 5000
    ) r
    where r.end_time > pg_catalog.now() - pg_catalog.make_interval(secs => %(seconds)s)
    group by r.pgt_id
)
select i.pgt_schema, i.pgt_name, i.status, i.consecutive_errors, i.is_populated,
    coalesce(pgtrickle.waits_for(i.pgt_id),
        case when i.effective_refresh_mode <> 'FULL' then (select v.spark from service v) end,
        (select v.missing from service v),
        case when i.schedule = 'calculated' and i.staleness > interval '0' then (select p.words from paced p) end),
    extract(epoch from i.staleness)::float8, coalesce(i.schedule, 'manual'),
    pgtrickle_internal.schedule_seconds(i.schedule), i.refresh_tier, i.effective_refresh_mode,
    coalesce(r.per_second, 0), i.last_refresh_at, h.action, h.duration_ms, i.last_error
from pgtrickle.stream_tables_info i
left join recent r on r.pgt_id = i.pgt_id
left join lateral (
    select v.action, v.duration_ms from pgtrickle.pgt_refresh_history v
    where v.pgt_id = i.pgt_id and v.status = 'COMPLETED'
    order by v.refresh_id desc limit 1
) h on true
