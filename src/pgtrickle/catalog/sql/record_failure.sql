-- record_failure: note that a refresh failed, in a transaction of its own; says what follows.
-- The first failure waits `first_delay`, each further one twice as long; after `max_errors` in a row the
-- stream table is suspended.
with failed as (
    update pgtrickle.pgt_stream_tables s set
        consecutive_errors = s.consecutive_errors + 1,
        last_error = %(error)s,
        last_refresh_at = clock_timestamp(),
        status = case when s.consecutive_errors + 1 >= %(max_errors)s then 'SUSPENDED' else 'ERROR' end,
        retry_at = case when s.consecutive_errors + 1 < %(max_errors)s then clock_timestamp()
            + least(%(first_delay)s::interval * 2 ^ least(s.consecutive_errors, 16), interval '5 min') end
    where s.pgt_id = %(id)s
    returning s.status
), answered as (
    update pgtrickle.pgt_refresh_requests r set answered_at = clock_timestamp(), error_message = %(error)s
    where r.pgt_id = %(id)s and r.answered_at is null
), noted as (
    insert into pgtrickle.pgt_refresh_history
        (pgt_id, start_time, end_time, action, status, duration_ms, reason, error_message, initiated_by)
    select %(id)s, %(started_at)s, clock_timestamp(), %(action)s, 'FAILED',
        extract(epoch from clock_timestamp() - %(started_at)s) * 1000, %(reason)s, %(error)s, %(initiated_by)s
    from failed
)
select status from failed
