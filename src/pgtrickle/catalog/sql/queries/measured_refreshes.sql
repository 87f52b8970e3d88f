-- measured_refreshes: the latest refreshes of a stream table whose cost was measured, oldest first.
-- Reads: pgtrickle.pgt_refresh_history, by its index.  Locks: nothing.
select h.strategy, coalesce(h.change_row_count, 0) as change_rows, h.duration_ms as milliseconds,
    extract(epoch from h.end_time)::double precision as ended_at, h.action = 'REINITIALIZE' as is_new_start
from (
    select * from pgtrickle.pgt_refresh_history
    where pgt_id = %(id)s order by refresh_id desc limit %(limit)s
) h
where h.status = 'COMPLETED' and h.strategy is not null
order by h.refresh_id
