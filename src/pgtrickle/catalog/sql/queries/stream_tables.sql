-- stream_tables: the catalog rows as the model knows them, under the names their tables have now.
-- Parameter `ids`: which ones, or null for all.
select s.pgt_id, s.pgt_relid::bigint, coalesce(n.nspname, s.pgt_schema), coalesce(c.relname, s.pgt_name),
    s.defining_query, s.schedule, s.refresh_mode, s.effective_refresh_mode, s.downgrade_reason, s.status,
    s.is_populated, s.frontier::text, s.upstream_frontier::text, s.data_timestamp, s.last_refresh_at,
    s.consecutive_errors, s.last_error, case when s.needs_reinit then s.reinit_reason end, s.settings,
    s.match_columns, s.pooler_compatibility_mode, s.follows_clock,
    (select g.generation from pgtrickle.pgt_caches g), s.created_at,
    s.diamond_consistency is distinct from 'none',
    case when exists (select from pgtrickle.pgt_waiting) then pgtrickle_internal.waits_for_triggers(s.pgt_id) end,
    s.ground_generation, s.ground_error, s.refresh_timeout, s.on_divergence = 'repair'
from pgtrickle.pgt_stream_tables s
left join pg_class c on c.oid = s.pgt_relid
left join pg_namespace n on n.oid = c.relnamespace
where %(ids)s::bigint[] is null or s.pgt_id = any (%(ids)s::bigint[])
order by s.pgt_id
