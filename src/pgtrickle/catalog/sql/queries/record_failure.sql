-- record_failure: record that a refresh failed, in a separate transaction. Returns the new status.
-- The n-th consecutive failure is retried after the n-th of `delays`; one more suspends the stream table.
with failed as (
    update pgtrickle.pgt_stream_tables s set
        consecutive_errors = s.consecutive_errors + 1,
        last_error = %(error)s,
        last_refresh_at = clock_timestamp(),
        status = case when s.consecutive_errors < cardinality(%(delays)s::interval[])
            then 'ERROR' else 'SUSPENDED' end,
        retry_at = clock_timestamp() + (%(delays)s::interval[])[s.consecutive_errors + 1]
    where s.pgt_id = %(id)s
    returning s.status, s.consecutive_errors
), answered as (
    update pgtrickle.pgt_refresh_requests r set answered_at = clock_timestamp(), error_message = %(error)s
    where r.pgt_id = %(id)s and r.kind = 'refresh' and r.answered_at is null
), noted as (
    insert into pgtrickle.pgt_refresh_history
        (pgt_id, start_time, end_time, action, status, duration_ms, reason, error_message, initiated_by)
    select %(id)s, %(started_at)s, clock_timestamp(), %(action)s, 'FAILED',
        extract(epoch from clock_timestamp() - %(started_at)s) * 1000, %(reason)s, %(error)s, %(initiated_by)s
    from failed
)
select status, consecutive_errors from failed
