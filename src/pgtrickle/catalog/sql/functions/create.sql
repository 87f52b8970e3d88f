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
    state text;
begin
    if pg_catalog.btrim(coalesce(query, ''), E' \t\n\r;') = '' then
        raise exception 'the query is empty' using
            errcode = 'invalid_parameter_value', hint = 'Give one SELECT.';
    end if;
    begin
        open probe for execute query;
        close probe;
        execute pg_catalog.format('create temporary view %I as ', view_name) || query;
    exception when others then
        get stacked diagnostics said = message_text, advice = pg_exception_hint, state = returned_sqlstate;
        raise exception 'the query is refused: %',
            case state when '42P11' then 'it is not one SELECT' else said end using
            errcode = case state when '42P11' then '42601' else state end,
            hint = coalesce(nullif(advice, ''), case
                when state = '42P11' then 'Give one SELECT and nothing else.'
                when state = '42501' then 'The owner of a stream table needs SELECT on everything its query reads.'
                else 'Run the query by itself to see where it is wrong.' end);
    end;
    return pg_catalog.to_regclass('pg_temp.' || view_name);
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
    execute format('create temporary view %I as ', view_name) || pgtrickle_internal.canonical_of(query_view);
    again := to_regclass('pg_temp.' || view_name);
    if pgtrickle_internal.unprinted(again) <> pgtrickle_internal.unprinted(query_view) then
        raise exception 'the query means more than its text says when PostgreSQL prints it' using
            errcode = 'feature_not_supported',
            detail = 'The printed text does not say which of two equal expressions GROUP BY means, nor which '
                'operator CASE, NULLIF, IS DISTINCT FROM or USING compares with if it is not one of pg_catalog.',
            hint = 'Group by one of the equal expressions only, or write the comparison with its operator.';
    end if;
    perform pgtrickle_internal.drop_view(again);
end
$$;

-- check_room: refuse a name that is in use, or a schema that the caller or the sidecar cannot use.
create or replace function pgtrickle_internal.check_room(schema_name text, table_name text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    sidecar oid := pgtrickle.sidecar_role();
    namespace oid := (select oid from pg_namespace where nspname = schema_name);
begin
    if namespace is null or schema_name in ('pgtrickle', 'pgtrickle_internal', 'pgtrickle_changes', 'pgtrickle_state')
        or schema_name ~ '^pg_'
    then
        raise exception '%', format('cannot create a stream table in schema %I', schema_name) using
            errcode = 'invalid_schema_name', hint = 'Name a schema that exists and is yours to use.';
    end if;
    if exists (select from pg_class where relname = table_name and relnamespace = namespace)
        or exists (select from pg_type where typname = table_name and typnamespace = namespace)
    then
        raise exception '%', format('%I.%I exists already', schema_name, table_name) using
            errcode = 'duplicate_table',
            hint = 'Choose another name, or use pgtrickle.create_or_replace_stream_table for a stream table.';
    end if;
    if not has_schema_privilege(namespace, 'CREATE') then
        raise exception '%', format('permission denied for schema %I', schema_name) using
            errcode = 'insufficient_privilege',
            hint = format('grant create on schema %I to %I', schema_name, current_user);
    end if;
    if not has_schema_privilege(sidecar, namespace, 'USAGE') then
        raise exception '%', format('pgtrickle may not use schema %I', schema_name) using
            errcode = 'insufficient_privilege',
            hint = format('grant usage on schema %I to %I', schema_name, pg_get_userbyid(sidecar));
    end if;
end
$$;

-- create_storage: create the empty table with the columns of the view, its guard, its index, and the grants for
-- the sidecar.
create or replace function pgtrickle_internal.create_storage(schema_name text, table_name text, query_view oid)
returns oid
language plpgsql
as $$
declare
    printed text := pg_catalog.format('%I.%I', schema_name, table_name);
    relation_id oid;
begin
    if pg_catalog.cardinality(pgtrickle_internal.columns_of(query_view)) = 0 then
        raise exception 'the query has no columns' using
            errcode = 'invalid_table_definition', hint = 'Select at least one column.';
    end if;
    begin
        -- a refresh finds rows by ctid, which other access methods may not support
        execute pg_catalog.format('create table %s using heap as table %s with no data',
            printed, pgtrickle_internal.printed(query_view));
    exception when others then
        raise exception 'the columns of the query cannot be those of a table: %', sqlerrm using
            errcode = sqlstate, hint = 'Give each column a name and a type that a table can have.';
    end;
    relation_id := printed::pg_catalog.regclass;
    execute pg_catalog.format('create trigger pgtrickle_guard before insert or update or delete or truncate '
        'on %s for each statement execute function pgtrickle.refuse_direct_write()', printed);
    execute pg_catalog.format('alter table %s enable always trigger pgtrickle_guard', printed);
    execute pg_catalog.format('grant select, insert, update, delete, trigger on %s to %I',
        printed, pg_catalog.pg_get_userbyid(pgtrickle.sidecar_role()));
    perform pgtrickle_internal.create_row_index(relation_id);
    perform pgtrickle_internal.prove_ownership(relation_id);
    return relation_id;
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
    tier text default null, refresh_timeout text default null, on_divergence text default null
) returns void
language plpgsql
as $$
declare
    asked jsonb := pgtrickle_internal.options(schedule, refresh_mode, initialize, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier, refresh_timeout,
        on_divergence);
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
comment on function pgtrickle.create_stream_table(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text) is
    'Create a stream table: a table that holds the result of a query, kept up to date by the sidecar. '
    'Call it with SELECT. The caller becomes the owner and needs SELECT on everything that the query '
    'reads.';

-- create_stream_table_if_not_exists: the same, but leaves an existing stream table unchanged.
create or replace function pgtrickle.create_stream_table_if_not_exists(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    initialize boolean default true, diamond_consistency text default null,
    diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null
) returns void
language plpgsql
as $$
begin
    if pgtrickle_internal.find_stream_table(name) is not null then
        raise notice 'stream table % exists already and stays as it is', name;
        return;
    end if;
    perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize,
        diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode,
        tier, refresh_timeout, on_divergence);
end
$$;
comment on function pgtrickle.create_stream_table_if_not_exists(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text) is
    'Create a stream table unless one of that name exists; an existing one stays as it is. Call it with '
    'SELECT. Takes the same arguments and rights as create_stream_table.';

-- create_or_replace_stream_table: the same, but changes an existing stream table to this definition.
create or replace function pgtrickle.create_or_replace_stream_table(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    initialize boolean default true, diamond_consistency text default null,
    diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null
) returns void
language plpgsql
as $$
declare
    parts text[] := pgtrickle_internal.new_name(name);
    existing bigint := pgtrickle_internal.find_stream_table(pg_catalog.format('%I.%I', parts[1], parts[2]));
begin
    if existing is null then
        perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize,
            diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode,
            tier, refresh_timeout, on_divergence);
    else
        perform pgtrickle_internal.alter_options(existing, pgtrickle_internal.options(schedule, refresh_mode, initialize,
            diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode,
            tier, refresh_timeout, on_divergence));
        perform pgtrickle_internal.alter_query(existing, query);
    end if;
end
$$;
comment on function pgtrickle.create_or_replace_stream_table(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text) is
    'Create a stream table, or give an existing one this definition. Call it with SELECT. To replace a '
    'stream table, you must own it.';
