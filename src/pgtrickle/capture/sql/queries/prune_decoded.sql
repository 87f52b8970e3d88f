-- prune_decoded: forget which transactions were decoded more than a minute ago, when every sidecar has polled since.
-- Those that a running refresh cannot see are kept: it still has to learn that they were decoded after its snapshot.
-- Writes: pgt_decoded.
delete from pgtrickle.pgt_decoded d
where d.decoded_at < clock_timestamp() - interval '1 min' and d.decoded_by < (
    select (pg_snapshot_xmax(pg_current_snapshot())::text::bigint - coalesce(max(age(a.backend_xmin)), 0))::text::xid8
    from pg_stat_activity a
    where a.datname = current_database() and pg_has_role(a.usesysid, pgtrickle.sidecar_role(), 'USAGE'))
