-- commit_refresh: what a refresh achieved, written in the transaction that holds its claim.
-- A refresh that found nothing is worth a line of history only if somebody asked for it.
with done as (
    update pgtrickle.pgt_stream_tables s set
        status = 'ACTIVE', is_populated = true, frontier = %(frontier)s::pg_snapshot,
        upstream_frontier = %(upstream)s::pg_snapshot, data_timestamp = %(data_timestamp)s,
        last_refresh_at = clock_timestamp(), consecutive_errors = 0, last_error = null, retry_at = null,
        needs_reinit = false, reinit_reason = null,
        -- what had no work tells nothing of how long work takes, nor does loading everything
        recent_ms = case when %(action)s in ('DIFFERENTIAL', 'FULL') then (array_prepend(
            (extract(epoch from clock_timestamp() - %(started_at)s) * 1000)::float8, s.recent_ms))[:5]
            else s.recent_ms end
    where s.pgt_id = %(id)s
), answered as (
    update pgtrickle.pgt_refresh_requests r set answered_at = clock_timestamp()
    where r.pgt_id = %(id)s and r.answered_at is null
        and pg_visible_in_snapshot(r.requested_in, coalesce(%(frontier)s, %(upstream)s)::pg_snapshot)
)
insert into pgtrickle.pgt_refresh_history
    (pgt_id, data_timestamp, start_time, end_time, action, status, rows_inserted, rows_deleted,
    delta_row_count, duration_ms, reason, initiated_by, change_row_count, strategy)
select %(id)s, %(data_timestamp)s, %(started_at)s, clock_timestamp(), %(action)s, 'COMPLETED',
    %(rows_inserted)s, %(rows_deleted)s, %(delta_rows)s,
    extract(epoch from clock_timestamp() - %(started_at)s) * 1000, %(reason)s, %(initiated_by)s,
    %(change_rows)s, %(strategy)s
where %(action)s <> 'NO_DATA' or %(initiated_by)s = 'manual'
