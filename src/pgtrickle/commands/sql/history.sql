-- history: the latest refreshes of the stream table `name`, newest first, at most `limit` of them.
select h.refresh_id, i.pgt_schema, i.pgt_name, h.action, h.status, h.start_time, h.rows_inserted, h.rows_deleted,
    h.duration_ms, h.reason, h.error_message, h.initiated_by, h.read_ms, h.compute_ms, h.apply_ms
from pgtrickle.visible_history h
join pgtrickle.stream_tables_info i on i.pgt_id = h.pgt_id
where h.pgt_id = pgtrickle_internal.find_stream_table(%(name)s)
order by h.refresh_id desc limit %(limit)s
