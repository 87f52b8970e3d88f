-- timeline: the latest refreshes of all stream tables, newest first, at most `limit` of them. Every role may run it.
-- Parameters: `after`, a number below which none is wanted; `since`, the earliest start; either may be null.
select h.refresh_id, i.pgt_schema, i.pgt_name, h.action, h.status, h.start_time, h.rows_inserted, h.rows_deleted,
    h.duration_ms, h.reason, h.error_message, h.initiated_by, h.read_ms, h.compute_ms, h.apply_ms
from (
    select v.* from pgtrickle.visible_history v
    where (%(after)s::bigint is null or v.refresh_id > %(after)s::bigint)
        and (%(since)s::timestamptz is null or v.start_time >= %(since)s::timestamptz)
    order by v.refresh_id desc limit %(limit)s
) h
join pgtrickle.stream_tables_info i on i.pgt_id = h.pgt_id
order by h.refresh_id desc
