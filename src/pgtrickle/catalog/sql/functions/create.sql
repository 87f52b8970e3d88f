-- create: create a stream table in the caller's transaction, as the caller, who becomes the owner.
-- These functions set no search_path: the query means what it means in the caller's session.

-- view_of: the query as a temporary view of the caller. Opening a cursor first ensures that it is one statement
-- that returns rows, and checks the caller's privileges as PostgreSQL does; nothing is executed.
create or replace function pgtrickle_internal.view_of(query text) returns oid
language plpgsql
as $$
declare
    probe refcursor;
    view_name text := pg_catalog.format('pgtrickle_%s',
        pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''));
    said text;
    advice text;
begin
    query := pgtrickle_internal.with_stand_ins(query);
    if pg_catalog.btrim(coalesce(query, ''), E' \t\n\r;') = '' then
        raise exception 'the query is empty' using
            errcode = 'syntax_error', hint = 'Give one SELECT.';
    end if;
    begin
        open probe for execute query;
        close probe;
        execute pg_catalog.format('create temporary view %I as ', view_name) || query;
    exception
        when invalid_cursor_definition then
            raise exception 'the query is not a single SELECT' using
                errcode = 'syntax_error', hint = 'Give one SELECT and nothing else.';
        when insufficient_privilege then
            get stacked diagnostics said = message_text, advice = pg_exception_hint;
            raise exception '%', said using errcode = 'insufficient_privilege',
                hint = coalesce(nullif(advice, ''), pgtrickle_internal.grants_for(query),
                    'The owner of a stream table needs SELECT on everything that its query reads.');
        when duplicate_column then
            get stacked diagnostics said = message_text;
            raise exception '%', said using errcode = 'duplicate_column', hint = 'Name each column differently, with AS.';
        -- all other errors pass as they are: they say where in the query the mistake is
    end;
    return pg_catalog.to_regclass('pg_temp.' || view_name);
end
$$;

-- grants_for: what the caller may not read, as GRANT statements; null if the query does not tell. A view can be
-- created without the right to read from it.
create or replace function pgtrickle_internal.grants_for(query text) returns text
language plpgsql
as $$
declare
    view_name text := pg_catalog.format('pgtrickle_%s',
        pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''));
    query_view oid;
    missing text;
begin
    execute pg_catalog.format('create temporary view %I as ', view_name) || query;
    query_view := pg_catalog.to_regclass('pg_temp.' || view_name);
    select pg_catalog.string_agg(m, '; ') into missing
    from pgtrickle_internal.missing_grants(query_view, pg_catalog.quote_ident(current_user)::pg_catalog.regrole::oid) m;
    perform pgtrickle_internal.drop_view(query_view);
    return missing;
exception when others then
    return null;
end
$$;

-- drop_view: drop the temporary view of a query.
create or replace function pgtrickle_internal.drop_view(query_view oid) returns void
language plpgsql
as $$
begin
    execute pg_catalog.format('drop view %s', pgtrickle_internal.printed(query_view));
end
$$;

-- unprinted: parts of a query that the printed text of its view may not show, in the order of its tree: which of
-- two equal expressions a GROUP BY or ORDER BY means, and operators outside pg_catalog, which CASE, NULLIF, IS
-- DISTINCT FROM and USING do not name.
create or replace function pgtrickle_internal.unprinted(query_view oid) returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(f.part[1] || ' ' || f.part[2] order by f.place), '{}')
    from pg_rewrite r,
        regexp_matches(r.ev_action::text, ':(ressortgroupref|tleSortGroupRef|opno|eqop|sortop) (\d+)', 'g')
            with ordinality as f(part, place)
    where r.ev_class = query_view and (f.part[1] ~ 'Group|group' or f.part[2]::oid >= 16384)
$$;

-- check_text: refuse a query whose printed text has another meaning. The catalog stores the printed text.
create or replace function pgtrickle_internal.check_text(query_view oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    view_name text := format('pgtrickle_%s', replace(gen_random_uuid()::text, '-', ''));
    again oid;
begin
    begin
        execute format('create temporary view %I as ', view_name) || pgtrickle_internal.canonical_of(query_view);
        again := to_regclass('pg_temp.' || view_name);
    exception when undefined_function then
        null; -- pg_catalog has no such operator
    end;
    if again is null or pgtrickle_internal.unprinted(again) <> pgtrickle_internal.unprinted(query_view) then
        raise exception 'the query means more than its text says when PostgreSQL prints it' using
            errcode = 'feature_not_supported',
            detail = 'The printed text does not say which of two equal expressions GROUP BY means, nor which '
                'operator CASE, NULLIF, IS DISTINCT FROM or USING compares with if it is not one of pg_catalog.',
            hint = 'Group by one of the equal expressions only, or write the comparison with its operator.';
    end if;
    perform pgtrickle_internal.drop_view(again);
end
$$;

-- enable_always_for: let the triggers on sources that the caller owns fire for replicated writes too.
create or replace function pgtrickle_internal.enable_always_for(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    source oid;
begin
    for source in
        select d.source_relid from pgtrickle.pgt_dependencies d
        where d.pgt_id = id and d.source_type in ('table', 'stream_table') order by 1
    loop
        perform pgtrickle_internal.enable_always(source);
        perform pgtrickle_internal.note_always(source);
    end loop;
    -- a proof can be used once
    perform pgtrickle_internal.prove_ownership(pgtrickle_internal.relation_of(id));
    perform pgtrickle_internal.note_enabled(pgtrickle_internal.relation_of(id));
end
$$;

-- create_stream_table: create a stream table. The sidecar compiles and loads it after the commit.
create or replace function pgtrickle.create_stream_table(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    initialize boolean default true, diamond_consistency text default null,
    diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null,
    keep_changes text default null, auxiliary_results text default null
) returns void
language plpgsql
as $$
declare
    asked jsonb := pgtrickle_internal.options(schedule, refresh_mode, initialize, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier, refresh_timeout,
        on_divergence, keep_changes, auxiliary_results);
    parts text[] := pgtrickle_internal.new_name(name);
    query_view oid;
    relation_id oid;
    id bigint;
begin
    perform pgtrickle_internal.check_not_copy();
    perform pgtrickle_internal.check_room(parts[1], parts[2]);
    query_view := pgtrickle_internal.view_of(query);
    perform pgtrickle_internal.check_text(query_view);
    relation_id := pgtrickle_internal.create_storage(parts[1], parts[2], query_view);
    id := pgtrickle_internal.register(query_view, relation_id, asked, pg_catalog.current_schemas(false));
    perform pgtrickle_internal.enable_always_for(id);
    perform pgtrickle_internal.drop_view(query_view);
end
$$;
comment on function pgtrickle.create_stream_table(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text, text, text) is
    E'Create a stream table: a table that holds the result of a query, kept up to date by the sidecar. '
    'Call it with SELECT. The caller becomes the owner and needs SELECT on everything that the query '
    'reads.\n'
    '\nname: The name of the new stream table, with or without a schema. Without one, it is created in '
    'the first schema of your search_path.'
    '\nquery: The defining query: one SELECT, without a semicolon.';

-- create_stream_table_if_not_exists: the same, but leaves an existing stream table unchanged.
create or replace function pgtrickle.create_stream_table_if_not_exists(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    initialize boolean default true, diamond_consistency text default null,
    diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null,
    keep_changes text default null, auxiliary_results text default null
) returns void
language plpgsql
as $$
begin
    if pgtrickle_internal.find_stream_table(name) is not null then
        raise notice 'stream table % already exists and was not changed', name;
        return;
    end if;
    perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize,
        diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode,
        tier, refresh_timeout, on_divergence, keep_changes, auxiliary_results);
end
$$;
comment on function pgtrickle.create_stream_table_if_not_exists(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text, text, text) is
    E'Create a stream table unless one of that name exists; an existing one stays as it is. Call it with '
    'SELECT. Takes the same arguments and rights as create_stream_table.\n'
    '\nname: The name of the new stream table, with or without a schema. Without one, it is created in '
    'the first schema of your search_path.'
    '\nquery: The defining query: one SELECT, without a semicolon.';

-- has_options: whether a stream table has these options already; null is any value.
create or replace function pgtrickle_internal.has_options(id bigint, asked jsonb) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select not exists (select from jsonb_each(jsonb_strip_nulls(asked)) a where a.value is distinct from p.present -> a.key)
    from pgtrickle.pgt_stream_tables s
    join pgtrickle.stream_tables_info i on i.pgt_id = s.pgt_id
    cross join lateral (select jsonb_build_object('schedule', coalesce(s.schedule, 'manual'),
        'refresh_mode', s.refresh_mode, 'initialize', s.initialize, 'diamond_consistency', s.diamond_consistency,
        'diamond_schedule_policy', coalesce(s.diamond_schedule_policy, 'default'), 'cdc_mode', s.cdc_mode,
        'append_only', s.append_only, 'pooler_compatibility_mode', s.pooler_compatibility_mode,
        'refresh_tier', s.refresh_tier, 'refresh_timeout', coalesce(i.refresh_timeout, -1),
        'on_divergence', s.on_divergence, 'keep_changes', coalesce(s.keep_changes, 'off'),
        'auxiliary_results', s.auxiliary_results)) p(present)
    where s.pgt_id = id
$$;

-- create_or_replace_stream_table: the same, but changes an existing stream table to this definition.
create or replace function pgtrickle.create_or_replace_stream_table(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    initialize boolean default true, diamond_consistency text default null,
    diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null,
    keep_changes text default null, auxiliary_results text default null
) returns void
language plpgsql
as $$
declare
    parts text[] := pgtrickle_internal.new_name(name);
    existing bigint := pgtrickle_internal.find_stream_table(pg_catalog.format('%I.%I', parts[1], parts[2]));
    asked jsonb := pgtrickle_internal.options(schedule, refresh_mode, initialize, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier, refresh_timeout,
        on_divergence, keep_changes, auxiliary_results);
begin
    if existing is null then
        perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize,
            diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode,
            tier, refresh_timeout, on_divergence, keep_changes, auxiliary_results);
    else
        -- to write the same options again would wait for a refresh that is running
        if not pgtrickle_internal.may_refresh(existing) or not pgtrickle_internal.has_options(existing, asked) then
            perform pgtrickle_internal.alter_options(existing, asked);
        end if;
        perform pgtrickle_internal.alter_query(existing, query);
    end if;
end
$$;
comment on function pgtrickle.create_or_replace_stream_table(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text, text, text) is
    E'Create a stream table, or give an existing one this definition. Call it with SELECT. To replace a '
    'stream table, you must own it.\n'
    '\nname: The name of the new stream table, with or without a schema. Without one, it is created in '
    'the first schema of your search_path.'
    '\nquery: The defining query: one SELECT, without a semicolon.';
