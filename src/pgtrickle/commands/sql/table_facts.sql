-- table_facts: what an overview shows of each stream table beside its status: its number, since when it has been
-- failing, and its last refresh.
-- Parameter `name`: one stream table, or null for all. Every role may run it.
select i.pgt_id, i.pgt_schema, i.pgt_name, f.failing_since,
    h.refresh_id, h.start_time, h.action, h.rows_inserted, h.rows_deleted, h.duration_ms
from pgtrickle.stream_tables_info i
left join lateral (
    select v.refresh_id, v.start_time, v.action, v.rows_inserted, v.rows_deleted, v.duration_ms
    from pgtrickle.visible_history v
    where v.pgt_id = i.pgt_id and v.status = 'COMPLETED'
    order by v.refresh_id desc limit 1
) h on true
left join lateral (
    select min(v.start_time) as failing_since
    from pgtrickle.visible_history v
    where i.consecutive_errors > 0 and v.pgt_id = i.pgt_id and v.status = 'FAILED'
        and v.refresh_id > coalesce(h.refresh_id, 0)
) f on true
where %(name)s::text is null or i.pgt_id = pgtrickle_internal.find_stream_table(%(name)s)
order by i.pgt_id
