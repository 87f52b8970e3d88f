-- stream_tables: the stream tables, under the current names of their tables. Each column is named after the
-- attribute of pgtrickle.model.stream_table.StreamTable that it fills.
-- Parameter `ids`: which ones, or null for all.  Locks: nothing.
select s.pgt_id as id, s.pgt_relid::bigint as relation, coalesce(n.nspname, s.pgt_schema) as schema,
    coalesce(c.relname, s.pgt_name) as name, s.defining_query as query, s.schedule, s.refresh_mode as mode,
    s.effective_refresh_mode as effective_mode, s.downgrade_reason, s.status, s.is_populated,
    s.frontier::text as frontier, s.upstream_frontier::text as upstream_frontier, s.data_timestamp,
    s.last_refresh_at, s.consecutive_errors, s.last_error,
    case when s.needs_reinit then s.reinit_reason end as reinit_reason, s.settings, s.match_columns,
    s.pooler_compatibility_mode as is_pooler_compatible, s.follows_clock,
    (select g.generation from pgtrickle.pgt_caches g) as cache_generation, s.created_at,
    s.diamond_consistency is distinct from 'none' as is_atomic,
    case when exists (select from pgtrickle.pgt_waiting)
        then pgtrickle_internal.waits_for_triggers(s.pgt_id) end as waits_for,
    s.ground_generation, s.ground_error, s.refresh_timeout, s.on_divergence = 'repair' as repairs_itself,
    s.append_only as is_append_only, s.auxiliary_results as auxiliary, s.state_is_behind,
    case when s.keep_changes is not null then (
        select jsonb_build_object('most_rows', k.most_rows, 'reset_reason', f.reset_reason,
            'columns', array(select a.attname from pg_attribute a
                where a.attrelid = s.pgt_relid and a.attnum > 0 and not a.attisdropped order by a.attnum),
            'fits', f.relation_id = s.pgt_relid and f.columns = pgtrickle_internal.columns_of(s.pgt_relid))
        from pgtrickle_internal.keep_bounds(s.keep_changes) k left join pgtrickle.pgt_feeds f on f.pgt_id = s.pgt_id
    ) end as feed
from pgtrickle.pgt_stream_tables s
left join pg_class c on c.oid = s.pgt_relid
left join pg_namespace n on n.oid = c.relnamespace
-- one condition, which an index serves in both cases: the plan of a prepared statement can then be kept
where s.pgt_id = any (coalesce(%(ids)s::bigint[], array(select a.pgt_id from pgtrickle.pgt_stream_tables a)))
order by s.pgt_id
