-- definitions: stream tables with what they rely on, and where they stand.
-- Parameter: ids, or null for all.  Locks: nothing.
select s.pgt_id, s.pgt_relid::bigint, s.pgt_schema, s.pgt_name, s.schedule,
    coalesce((
        select jsonb_agg(jsonb_build_array(d.source_type, d.source_relid::bigint)) from pgtrickle.pgt_dependencies d
        where d.pgt_id = s.pgt_id and d.source_type not in ('view', 'function')
    ), '[]') as sources,
    s.status, s.is_populated, s.last_refresh_at, s.retry_at, s.needs_reinit, s.initialize,
    s.frontier::text, s.upstream_frontier::text
from pgtrickle.pgt_stream_tables s
where %(ids)s::bigint[] is null or s.pgt_id = any (%(ids)s)
