-- tick: everything that a tick asks, in one statement and so in one snapshot, which it tells.
-- Parameters: seen, the snapshot of the last tick (null the first time: then nothing is new); has_views,
-- whether any stream table reads a materialized view, of whose refreshes nobody tells us.
-- The transactions that touched a source are told one by one, so that who has followed them is left alone.
-- Locks: nothing.
select clock_timestamp() as now, pg_current_snapshot()::text as snapshot,
    array(
        select distinct g.pgt_id from pgtrickle.pgt_generation g
        where g.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(g.xid, p.seen)
    ) as redefined,
    coalesce((
        select jsonb_object_agg(t.source, t.xids) from (
            select t.source, array_agg(distinct t.xid::text) as xids
            from (
                select * from pgtrickle_changes.touched_0
                union all
                select * from pgtrickle_changes.touched_1
            ) t
            where t.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(t.xid, p.seen)
            group by t.source
        ) t
    ), '{}') as touched,
    array(
        select r.pgt_id from pgtrickle.pgt_refresh_requests r where r.answered_at is null
        union
        -- a lock is seen before its transaction commits, which is what it is for
        select l.objid::bigint from pg_locks l
        where l.locktype = 'advisory' and l.classid = pgtrickle_internal.refresh_lock()::oid and l.objsubid = 2
            and l.database = (select oid from pg_database where datname = current_database())
    ) as requested,
    array(
        select d.pgt_id from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_sources s on s.source_relid = d.source_relid
        where %(has_views)s and d.source_type = 'materialized_view'
            and s.version is distinct from pgtrickle_internal.source_version(d.source_relid)
    ) as refreshed_views,
    pgtrickle_internal.is_draining() as is_draining,
    (select c.generation from pgtrickle.pgt_caches c) as cache_generation,
    pgtrickle_internal.installation() as installation
from (select %(seen)s::pg_snapshot) p(seen)
