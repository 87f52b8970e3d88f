-- take_request: take the oldest request of a kind that no living sidecar has taken. The caller commits at once.
-- Reads and writes: pgtrickle.pgt_refresh_requests.  Locks: one row, skipping locked ones.
update pgtrickle.pgt_refresh_requests t set taken_by = %(sidecar)s
where t.request_id = (
    select r.request_id from pgtrickle.pgt_refresh_requests r
    where r.kind = %(kind)s and r.answered_at is null and not pgtrickle_internal.is_alive(r.taken_by)
    order by r.request_id limit 1 for no key update skip locked
)
returning t.request_id as id, t.pgt_id as table, t.seconds
