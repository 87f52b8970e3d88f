-- explain: everything that is known about one stream table. Every role may ask; reasons that may quote data are shown as
-- in visible_history.

-- explain_st: the properties of a stream table. With `with_analyze`, PostgreSQL evaluates its query and says what that
-- cost.
create or replace function pgtrickle.explain_st(name text, with_analyze boolean default false)
returns table (property text, value text)
language sql
as $$
    select e.property, e.value from pgtrickle_internal.properties_of(pgtrickle_internal.stream_table(name)) e
    union all
    select 'query_plan', pgtrickle_internal.analysed_plan(pgtrickle_internal.stream_table(name)) where with_analyze
$$;
comment on function pgtrickle.explain_st(text, boolean) is
    E'What is known about a stream table: its definition, how it is refreshed and why, the plan that the sidecar compiled, '
    'and figures of its latest refreshes. Call it with SELECT ... FROM. Everyone may call it; only the owner may call it '
    'with with_analyze.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nwith_analyze: Whether to evaluate the defining query as well, and to add the plan that PostgreSQL used and how '
    'long each step took. This is what a full refresh costs; nothing is written.'
    '\nproperty: What the row says. A property that is not known has no row.'
    '\nvalue: Its value as text. Figures are JSON.';

-- properties_of: the properties without those that cost an evaluation.
create or replace function pgtrickle_internal.properties_of(id bigint) returns table (property text, value text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with about as materialized (
        select i.*, s.pgt_relid, s.frontier, s.follows_clock, format('%I.%I', i.pgt_schema, i.pgt_name) as name
        from pgtrickle.stream_tables_info i join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id where i.pgt_id = id
    ), sources as materialized (
        select l.* from about a cross join lateral pgtrickle.list_sources(a.name) l where l.source_type not in ('view', 'function')
    ), readers as materialized (
        select format('%I.%I', i.pgt_schema, i.pgt_name) as name
        from about a join pgtrickle.pgt_dependencies d on d.source_relid = a.pgt_relid and d.source_type = 'stream_table'
        join pgtrickle.stream_tables_info i on i.pgt_id = d.pgt_id
    ), latest as materialized (
        select h.action, h.duration_ms, h.rows_inserted + h.rows_deleted as written, g.change_row_count as read, h.refresh_id
        from pgtrickle.visible_history h join pgtrickle.pgt_refresh_history g on g.refresh_id = h.refresh_id
        where h.pgt_id = id and h.status = 'COMPLETED' and h.action <> 'NO_DATA'
        order by h.refresh_id desc limit 20
    )
    select p.property, p.value from about a cross join lateral (values
        (1, 'pgt_name', a.name), (2, 'owner', a.owner::text), (3, 'defining_query', a.defining_query),
        (4, 'schedule', coalesce(a.schedule, 'manual')), (5, 'refresh_mode', a.refresh_mode),
        (6, 'effective_refresh_mode', a.effective_refresh_mode), (7, 'downgrade_reason', a.downgrade_reason),
        (8, 'status', a.status), (9, 'is_populated', a.is_populated::text),
        (10, 'dvm_supported', (a.effective_refresh_mode = 'DIFFERENTIAL')::text),
        (11, 'output_columns', array_to_string(pgtrickle_internal.columns_of(a.pgt_relid), ', ')),
        (12, 'sources', (select string_agg(s.source_table, ', ' order by s.source_table) from sources s)),
        (13, 'source_oids', (select string_agg(s.source_oid::text, ', ' order by s.source_table) from sources s)),
        (14, 'readers', (select string_agg(r.name, ', ' order by r.name) from readers r)),
        (15, 'frontier', a.frontier::text), (16, 'data_timestamp', a.data_timestamp::text),
        (17, 'staleness', a.staleness::text), (18, 'waits_for', pgtrickle.waits_for(a.pgt_id)),
        (18, 'capture', (select string_agg(format('%s by %s%s', s.source_table, s.cdc_mode,
                ', because ' || pgtrickle_internal.why_triggers(s.source_oid)), '; ' order by s.source_table) from sources s)),
        (19, 'plan', (select c.plan from pgtrickle.pgt_compiled c where c.pgt_id = a.pgt_id order by c.compiled_at desc limit 1)),
        (20, 'amplification_stats', (select jsonb_build_object('samples', count(*), 'min', min(l.ratio), 'max', max(l.ratio),
                'avg', avg(l.ratio))::text
            from (select round(t.written / t.read::numeric, 3) as ratio from latest t where t.read > 0) l having count(*) > 0)),
        (21, 'refresh_timing_stats', (select jsonb_build_object('samples', count(*), 'min_ms', min(l.duration_ms),
                'max_ms', max(l.duration_ms), 'avg_ms', avg(l.duration_ms),
                'latest_ms', (array_agg(l.duration_ms order by l.refresh_id desc))[1],
                'latest_action', (array_agg(l.action order by l.refresh_id desc))[1])::text
            from latest l having count(*) > 0)),
        (22, 'source_partitions', (select jsonb_agg(jsonb_build_object('source', s.source_table,
                'partition_key', pg_get_partkeydef(s.source_oid),
                'partitions', (select count(*) from pg_partition_tree(s.source_oid) t where t.isleaf)) order by s.source_table)::text
            from sources s join pg_class c on c.oid = s.source_oid and c.relkind = 'p')),
        (23, 'dependency_graph_dot', format(E'digraph dependency_subgraph {\n  %s [shape=box]\n%s%s}', to_json(a.name),
            (select string_agg(format(E'  %s [shape=%s]\n  %s -> %s\n', to_json(s.source_table),
                case s.source_type when 'stream_table' then 'box' else 'ellipse' end, to_json(s.source_table), to_json(a.name)), ''
                order by s.source_table) from sources s),
            (select string_agg(format(E'  %s [shape=box]\n  %s -> %s\n', to_json(r.name), to_json(a.name), to_json(r.name)), ''
                order by r.name) from readers r)))
    ) p(place, property, value) where p.value is not null order by p.place
$$;

-- analysed_plan: evaluate the query of a stream table, and say how PostgreSQL did it. Runs as the caller, who must be
-- the owner itself: the query may call functions of the owner, which nobody else should run with their own rights.
-- The settings of the query last until the end of this function.
create or replace function pgtrickle_internal.analysed_plan(id bigint) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
    about record;
    line text;
    lines text[] := '{}';
begin
    select s.defining_query, s.settings, c.relowner, pgtrickle_internal.shown_name(s.pgt_id) as name into about
    from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = pgtrickle_internal.relation_of(s.pgt_id)
    where s.pgt_id = id;
    if about.relowner <> quote_ident(current_user)::regrole then
        raise exception '%', format('only its owner may evaluate the query of stream table %s', about.name) using
            errcode = 'insufficient_privilege',
            hint = format('Run set role %I first, or leave with_analyze out.', pg_get_userbyid(about.relowner));
    end if;
    begin
        perform set_config(e.key, e.value, true) from jsonb_each_text(about.settings) e;
        for line in execute 'explain (analyze) ' || about.defining_query loop
            lines := array_append(lines, line);
        end loop;
        raise exception using errcode = 'PT001';
    exception when sqlstate 'PT001' then
        null;
    end;
    return array_to_string(lines, E'\n');
end
$$;
