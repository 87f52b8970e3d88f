-- commit_refresh: write the results of refreshes, in the transaction that holds their claims.
-- Parameters: one array for each column, with an entry for each refresh. A refresh without changes is recorded in
-- the history only if it was requested.
with refreshed as materialized (
    select *, coalesce(r.frontier, r.upstream) as seen, clock_timestamp() as ended_at
    from unnest(%(ids)s::bigint[], %(actions)s::text[], %(started_at)s::timestamptz[],
        %(milliseconds)s::double precision[], %(data_timestamps)s::timestamptz[],
        %(frontiers)s::pg_snapshot[], %(upstreams)s::pg_snapshot[], %(rows_inserted)s::bigint[],
        %(rows_deleted)s::bigint[], %(delta_rows)s::bigint[], %(reasons)s::text[], %(initiators)s::text[],
        %(change_rows)s::bigint[], %(strategies)s::text[], %(read_ms)s::double precision[],
        %(compute_ms)s::double precision[], %(apply_ms)s::double precision[], %(states_behind)s::boolean[])
        with ordinality as r(id, action, started_at, milliseconds, data_timestamp, frontier, upstream,
            rows_inserted, rows_deleted, delta_rows, reason, initiated_by, change_rows, strategy, read_ms,
            compute_ms, apply_ms, state_is_behind, position)
), done as (
    update pgtrickle.pgt_stream_tables s set
        status = 'ACTIVE', is_populated = true, frontier = r.frontier, upstream_frontier = r.upstream,
        data_timestamp = r.data_timestamp, last_refresh_at = r.ended_at, consecutive_errors = 0,
        last_error = null, retry_at = null, needs_reinit = false, reinit_reason = null,
        state_is_behind = coalesce(r.state_is_behind, s.state_is_behind),
        -- durations of refreshes without changes, and of full loads, do not predict the next one
        recent_ms = case when r.action in ('DIFFERENTIAL', 'FULL')
            then (array_prepend(r.milliseconds, s.recent_ms))[:5] else s.recent_ms end
    from refreshed r where s.pgt_id = r.id
), answered as (
    update pgtrickle.pgt_refresh_requests q set answered_at = r.ended_at,
        answer = jsonb_build_object('action', r.action, 'rows_inserted', r.rows_inserted,
            'rows_deleted', r.rows_deleted, 'milliseconds', r.milliseconds, 'reason', r.reason, 'read_ms', r.read_ms,
            'compute_ms', r.compute_ms, 'apply_ms', r.apply_ms)
    from refreshed r where q.pgt_id = r.id and q.kind = 'refresh' and q.answered_at is null
        and pg_visible_in_snapshot(q.requested_in, r.seen)
)
insert into pgtrickle.pgt_refresh_history
    (pgt_id, data_timestamp, start_time, end_time, action, status, rows_inserted, rows_deleted,
    delta_row_count, duration_ms, reason, initiated_by, change_row_count, strategy, read_ms, compute_ms, apply_ms)
select r.id, r.data_timestamp, r.started_at, r.started_at + r.milliseconds * interval '1 ms', r.action,
    'COMPLETED', r.rows_inserted, r.rows_deleted, r.delta_rows, r.milliseconds, r.reason, r.initiated_by,
    r.change_rows, r.strategy, r.read_ms, r.compute_ms, r.apply_ms
from refreshed r where r.action <> 'NO_DATA' or r.initiated_by = 'manual' order by r.position
