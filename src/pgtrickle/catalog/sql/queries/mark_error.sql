-- mark_error: record that a refresh was refused before it began, in a separate transaction. It counts as a failure.
-- `started_at` is null if nothing was tried.
with refused as (
    update pgtrickle.pgt_stream_tables s set
        status = case s.status when 'SUSPENDED' then s.status else 'ERROR' end,
        consecutive_errors = s.consecutive_errors + 1, last_error = %(error)s, retry_at = null
    where s.pgt_id = %(id)s
    returning s.pgt_id, s.effective_refresh_mode
)
insert into pgtrickle.pgt_refresh_history
    (pgt_id, start_time, end_time, action, status, duration_ms, error_message, initiated_by)
select r.pgt_id, b.started_at, clock_timestamp(), coalesce(r.effective_refresh_mode, 'REINITIALIZE'), 'FAILED',
    extract(epoch from clock_timestamp() - b.started_at) * 1000, %(error)s, %(initiated_by)s
from refused r cross join (select coalesce(%(started_at)s::timestamptz, clock_timestamp())) b(started_at)
