-- note_previews: make a request of each preview that a session waits for inside its transaction. One that waits already,
-- and that nobody has begun to answer, serves all who ask for the same stream table.
-- Reads: pg_locks.  Writes: pgtrickle.pgt_refresh_requests.
insert into pgtrickle.pgt_refresh_requests (pgt_id, kind)
select distinct s.pgt_id, 'preview'
from pg_locks l join pgtrickle.pgt_stream_tables s on s.pgt_id = l.objid::bigint
where l.locktype = 'advisory' and l.classid = pgtrickle_internal.preview_lock()::oid and l.objsubid = 2
    and l.database = (select oid from pg_database where datname = current_database())
    and not exists (select from pgtrickle.pgt_refresh_requests r
        where r.pgt_id = s.pgt_id and r.kind = 'preview' and r.answered_at is null and r.taken_by is null)
