-- requested: the stream tables somebody waits for, by a stored request or by an advisory lock.
-- The lock is seen before its transaction commits, which is what it is for.
select pgt_id from pgtrickle.pgt_refresh_requests where answered_at is null
union
select s.pgt_id from pg_locks l
join pgtrickle.pgt_stream_tables s on s.pgt_id = l.objid::bigint
where l.locktype = 'advisory' and l.classid = pgtrickle.refresh_lock()::oid and l.objsubid = 2
    and l.database = (select oid from pg_database where datname = current_database())
