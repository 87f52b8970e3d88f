-- tick: everything that a tick asks, in one statement and so in one snapshot, which it tells.
-- Parameters: seen, the snapshot of the last tick (null the first time: then nothing is new); has_views,
-- whether any stream table reads a materialized view, of whose refreshes nobody tells us.
-- The transactions that touched a source are told one by one, so that who has followed them is left alone.
-- Locks: nothing.
-- A lock is seen before its transaction commits, which is what it is for.
with locks as materialized (
    select l.classid, l.objid::bigint as pgt_id from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 2
        and l.classid in (pgtrickle_internal.refresh_lock()::oid, pgtrickle_internal.preview_lock()::oid)
        and l.database = (select oid from pg_database where datname = current_database())
)
select clock_timestamp() as now, pg_current_snapshot()::text as snapshot,
    array(
        select distinct g.pgt_id from pgtrickle.pgt_generation g
        where g.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(g.xid, p.seen)
    ) as redefined,
    coalesce((
        select jsonb_object_agg(t.source, t.xids) from (
            select t.source, array_agg(distinct t.xid::text) as xids
            from (
                select w.xid, w.source from (
                    select xid, source from pgtrickle_changes.touched_0
                    union all
                    select xid, source from pgtrickle_changes.touched_1
                ) w
                where w.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(w.xid, p.seen)
                union all
                -- a transaction is decoded after its commit, when a poll may have seen it
                select d.xid, d.source_relid from pgtrickle.pgt_decoded d
                where d.decoded_by >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(d.decoded_by, p.seen)
            ) t
            group by t.source
        ) t
    ), '{}') as touched,
    array(
        select r.pgt_id from pgtrickle.pgt_refresh_requests r where r.answered_at is null and r.kind = 'refresh'
        union
        select l.pgt_id from locks l where l.classid = pgtrickle_internal.refresh_lock()::oid
    ) as requested,
    exists (
        select from pgtrickle.pgt_refresh_requests r
        where r.answered_at is null and r.kind = 'verify' and not pgtrickle_internal.is_alive(r.taken_by)
    ) as has_comparisons,
    exists (select from locks l where l.classid = pgtrickle_internal.preview_lock()::oid) or exists (
        select from pgtrickle.pgt_refresh_requests r
        where r.answered_at is null and r.kind = 'preview' and not pgtrickle_internal.is_alive(r.taken_by)
    ) as has_previews,
    array(
        select d.pgt_id from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_sources s on s.source_relid = d.source_relid
        where %(has_views)s and d.source_type = 'materialized_view'
            and s.version is distinct from pgtrickle_internal.source_version(d.source_relid)
    ) as refreshed_views,
    pgtrickle_internal.is_draining() as is_draining, pgtrickle.is_enabled() as is_enabled,
    (select c.generation from pgtrickle.pgt_caches c) as cache_generation,
    pgtrickle_internal.installation() as installation
from (select %(seen)s::pg_snapshot) p(seen)
