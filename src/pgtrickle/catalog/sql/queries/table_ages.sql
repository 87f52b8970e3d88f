-- table_ages: the loaded stream tables that do not show every change, with the time before which they do, and those that
-- are recorded as stale. Suspended ones have an alert of their own.
select s.pgt_id as id, f.shown_until, clock_timestamp() as now, e.since is not null as is_stale, s.status = 'SUSPENDED' as is_suspended
from pgtrickle.pgt_stream_tables s
join pgtrickle_internal.shown_times(null) f on f.pgt_id = s.pgt_id
left join pgtrickle.pgt_episodes e on e.event = 'stale_data' and e.subject = s.pgt_id
where e.since is not null or f.shown_until < pgtrickle_internal.snapshot_time()
