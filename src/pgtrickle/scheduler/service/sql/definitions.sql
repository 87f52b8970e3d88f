-- definitions: stream tables with what they rely on, and where they stand.
-- Parameter: ids, or null for all.  Locks: nothing.
select s.pgt_id, s.pgt_relid::bigint as relation, s.pgt_schema as schema, s.pgt_name as name, s.schedule,
    s.refresh_tier as tier, s.diamond_schedule_policy as diamond_policy,
    s.diamond_consistency is distinct from 'none' as is_atomic,
    s.pgt_id in (select g.pgt_id from pgtrickle_internal.gated_tables() g union all select w.pgt_id from pgtrickle.pgt_waiting w)
        as is_gated,
    coalesce((
        select jsonb_agg(jsonb_build_array(d.source_type, d.source_relid::bigint)) from pgtrickle.pgt_dependencies d
        where d.pgt_id = s.pgt_id and d.source_type not in ('view', 'function')
    ), '[]') as sources, s.pgt_owner::bigint as owner,
    s.status, s.is_populated, s.last_refresh_at, s.retry_at, s.needs_reinit, s.initialize,
    s.frontier::text as frontier, s.upstream_frontier::text as upstream_frontier, s.data_timestamp, s.recent_ms,
    s.behind_since is not null as is_behind, s.follows_clock is not false as follows_clock
from pgtrickle.pgt_stream_tables s
where %(ids)s::bigint[] is null or s.pgt_id = any (%(ids)s)
