-- rest: whether anything has happened in a database at rest that its sidecar must look at, in one statement.
-- Parameters: seen, the snapshot of the last poll; ground, the snapshot of the last check of the ground that found
-- nothing; has_views, as for a tick.
-- Writes nothing, unless the versions of roles have changed (see poll_ground).  Locks: nothing.
select g.snapshot, g.moved is not null and g.moved <> '{}'
    or exists (
        select from pgtrickle.pgt_generation n
        where n.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(n.xid, p.seen)
    )
    or exists (
        select from (
            select xid from pgtrickle_changes.touched_0
            union all
            select xid from pgtrickle_changes.touched_1
        ) t
        where t.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(t.xid, p.seen)
    )
    or exists (select from pgtrickle.pgt_refresh_requests r where r.answered_at is null)
    or exists (
        select from pg_locks l
        where l.locktype = 'advisory' and l.objsubid = 2
            and l.classid in (pgtrickle_internal.refresh_lock()::oid, pgtrickle_internal.preview_lock()::oid)
            and l.database = (select oid from pg_database where datname = current_database())
    )
    or exists (select from pgtrickle.pgt_waiting)
    or exists (
        select from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_sources s on s.source_relid = d.source_relid
        where %(has_views)s and d.source_type = 'materialized_view'
            and s.version is distinct from pgtrickle_internal.source_version(d.source_relid)
    )
    or not pgtrickle.is_enabled() as has_news,
    pgtrickle_internal.installation() as installation
from (select %(seen)s::pg_snapshot) p(seen) cross join pgtrickle_internal.poll_ground(%(ground)s) g
