-- definitions: stream tables as statements in a file, and whether they are as a file says.

-- definition_text: the statement CREATE STREAM TABLE that creates a stream table again, with the options that are not
-- the default.
create or replace function pgtrickle_internal.definition_text(id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select 'CREATE STREAM TABLE ' || pgtrickle_internal.shown_name(id) || coalesce(' WITH (' || o.given || ')', '')
        || E' AS\n' || s.defining_query || E';\n'
    from pgtrickle.pgt_stream_tables s join pgtrickle.stream_tables_info i on i.pgt_id = s.pgt_id
    cross join lateral (
        select string_agg(v.name || ' = ' || v.value, ', ' order by v.number)
        from (values
            (1, 'schedule', quote_literal(nullif(coalesce(s.schedule, 'manual'), 'calculated'))),
            (2, 'refresh_mode', quote_literal(nullif(s.refresh_mode, 'AUTO'))),
            (3, 'initialize', case when not s.initialize then 'false' end),
            (4, 'diamond_consistency', quote_literal(nullif(s.diamond_consistency, 'atomic'))),
            (5, 'diamond_schedule_policy', quote_literal(s.diamond_schedule_policy)),
            (6, 'cdc_mode', quote_literal(nullif(s.cdc_mode, 'trigger'))),
            (7, 'append_only', case when s.append_only then 'true' end),
            (8, 'pooler_compatibility_mode', case when s.pooler_compatibility_mode then 'true' end),
            (9, 'tier', quote_literal(nullif(s.refresh_tier, 'hot'))),
            (10, 'refresh_timeout', quote_literal(case i.refresh_timeout when 0 then 'none' else i.refresh_timeout || 's' end)),
            (11, 'on_divergence', quote_literal(nullif(s.on_divergence, 'repair'))),
            (12, 'keep_changes', quote_literal(s.keep_changes)),
            (13, 'auxiliary_results', quote_literal(nullif(s.auxiliary_results, 'auto')))
        ) v(number, name, value)
    ) o(given)
    where s.pgt_id = id
$$;

create or replace function pgtrickle.export_definition(name text) returns text
language sql stable
as $$ select pgtrickle_internal.definition_text(pgtrickle_internal.stream_table(name)) $$;
comment on function pgtrickle.export_definition(text) is
    E'The statement CREATE STREAM TABLE that defines a stream table, for a file that pgtrickle apply reads. Call it with '
    'SELECT. Everyone may call it.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';

-- definition_changes: what differs between a stream table and a definition: query, settings (of the session, on which the
-- meaning of the query depends), and the names of options. `options` comes from pgtrickle_internal.options with every
-- option given. Whether a stream table is loaded on creation says nothing about one that exists.
create or replace function pgtrickle_internal.definition_changes(id bigint, query text, options jsonb) returns text[]
language plpgsql
as $$
declare
    query_view oid := pgtrickle_internal.view_of(query);
    canonical text := pgtrickle_internal.canonical_of(query_view);
begin
    perform pgtrickle_internal.drop_view(query_view);
    return pgtrickle_internal.stored_changes(id, canonical, options);
end
$$;

create or replace function pgtrickle_internal.stored_changes(id bigint, canonical text, options jsonb) returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select array(
        select 'query' where s.defining_query <> canonical
        union all
        select 'settings' where exists (
            select from jsonb_each(pgtrickle_internal.session_settings()) e where s.settings -> e.key <> e.value)
        union all
        select case o.key when 'refresh_tier' then 'tier' else o.key end
        from jsonb_each(options) o join jsonb_each(jsonb_build_object(
            'schedule', coalesce(s.schedule, 'manual'), 'refresh_mode', s.refresh_mode,
            'diamond_consistency', coalesce(s.diamond_consistency, 'atomic'),
            'diamond_schedule_policy', coalesce(s.diamond_schedule_policy, 'default'), 'cdc_mode', s.cdc_mode,
            'append_only', s.append_only, 'pooler_compatibility_mode', s.pooler_compatibility_mode,
            'refresh_tier', s.refresh_tier, 'refresh_timeout', coalesce(i.refresh_timeout, -1),
            'on_divergence', s.on_divergence, 'keep_changes', coalesce(s.keep_changes, 'off'),
            'auxiliary_results', s.auxiliary_results)) h on h.key = o.key
        where o.value <> h.value)
    from pgtrickle.pgt_stream_tables s join pgtrickle.stream_tables_info i on i.pgt_id = s.pgt_id
    where s.pgt_id = id
$$;

-- note_set: record which set of definitions created a stream table, whose owner has proved to be the caller.
create or replace function pgtrickle_internal.note_set(relation_id oid, set_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    insert into pgtrickle.pgt_definition_sets (pgt_id, set_name)
    select s.pgt_id, note_set.set_name from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id
    on conflict (pgt_id) do update set set_name = excluded.set_name;
end
$$;

-- tables_of_set: the stream tables of the caller that a set of definitions created, those that are read last. Who can act
-- for other roles gets only those of its own: every role can put its stream tables into a set of any name.
create or replace function pgtrickle_internal.tables_of_set(set_name text) returns table (pgt_id bigint, name text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with recursive depths(pgt_id, depth) as (
        select d.pgt_id, 0 from pgtrickle.pgt_definition_sets d where d.set_name = tables_of_set.set_name
        union
        select d.pgt_id, u.depth + 1 from depths u
        join pgtrickle.pgt_stream_tables s on s.pgt_id = u.pgt_id
        join pgtrickle.pgt_dependencies d on d.source_relid = s.pgt_relid and d.source_type = 'stream_table'
    )
    select m.pgt_id, pgtrickle_internal.shown_name(m.pgt_id)
    from pgtrickle.pgt_definition_sets m
    join pgtrickle.pgt_stream_tables s on s.pgt_id = m.pgt_id join pg_class c on c.oid = s.pgt_relid
    where m.set_name = tables_of_set.set_name and c.relowner = quote_ident(current_user)::regrole
        and pgtrickle_internal.may_refresh(m.pgt_id)
    order by (select max(d.depth) from depths d where d.pgt_id = m.pgt_id) desc, m.pgt_id desc
$$;
