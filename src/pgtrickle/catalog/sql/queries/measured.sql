-- measured: the latest refreshes of a stream table that tell what it costs, the oldest first.
-- Reads: pgtrickle.pgt_refresh_history, by its index.  Locks: nothing.
select h.strategy, coalesce(h.change_row_count, 0), h.duration_ms, extract(epoch from h.end_time)::double precision,
    h.action = 'REINITIALIZE'
from (
    select * from pgtrickle.pgt_refresh_history
    where pgt_id = %(id)s order by refresh_id desc limit %(limit)s
) h
where h.status = 'COMPLETED' and h.strategy is not null
order by h.refresh_id
