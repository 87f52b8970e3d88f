-- alter: change a stream table. Each change has two functions: one runs as the caller, who proves to own the
-- table, and one runs as the sidecar's role and writes the catalog.

-- relation_of: the table of a stream table. Raises an error if it does not exist.
create or replace function pgtrickle_internal.relation_of(id bigint) returns oid
language plpgsql
as $$
declare
    relation_id oid;
begin
    perform pgtrickle_internal.check_not_copy();
    relation_id := pgtrickle_internal.bound_relation(id);
    if relation_id is null and pgtrickle_internal.named_relation(id) is not null then
        raise exception '%', pg_catalog.format('table %s was dropped and created again', pgtrickle_internal.shown_name(id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = pg_catalog.format('To use the new table, run select pgtrickle.repair_stream_table(%1$L). To remove '
                'what is left of the old one, run select pgtrickle.drop_stream_table(%1$L).', pgtrickle_internal.shown_name(id));
    elsif relation_id is null then
        raise exception '%', pg_catalog.format('table %s was dropped', pgtrickle_internal.shown_name(id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = pg_catalog.format('Remove what is left: select pgtrickle.drop_stream_table(%L)', pgtrickle_internal.shown_name(id));
    end if;
    return relation_id;
end
$$;

-- alter_options: change options; null leaves an option unchanged.
create or replace function pgtrickle_internal.alter_options(id bigint, options jsonb) returns void
language plpgsql
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
begin
    perform pgtrickle_internal.prove_ownership(relation_id);
    perform pgtrickle_internal.change_options(relation_id, options);
end
$$;

create or replace function pgtrickle_internal.change_options(relation_id oid, options jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id);
    mode_before text := (select s.refresh_mode from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    perform pgtrickle_internal.store_options(id, options);
    update pgtrickle.pgt_stream_tables s
    set effective_refresh_mode = null, downgrade_reason = null
    where s.pgt_id = id and s.refresh_mode <> mode_before;
    delete from pgtrickle.pgt_compiled p using pgtrickle.pgt_stream_tables s
    where p.pgt_id = id and s.pgt_id = id and s.refresh_mode <> mode_before;
end
$$;

-- alter_query: replace the query of a stream table. If it has the same columns, the old rows stay readable until the
-- sidecar has applied the difference. Otherwise a table with the new columns and rows takes the place of the old one.
create or replace function pgtrickle_internal.alter_query(id bigint, query text) returns void
language plpgsql
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
    query_view oid := pgtrickle_internal.view_of(query);
begin
    perform pgtrickle_internal.check_text(query_view);
    if pgtrickle_internal.canonical_of(query_view)
        = (select s.defining_query from pgtrickle.pgt_stream_tables s where s.pgt_id = id
            -- under other settings the same text may mean something else
            and not exists (select from jsonb_each(pgtrickle_internal.session_settings()) e
                where s.settings -> e.key <> e.value))
        -- a source may have changed the types of the result
        and pgtrickle_internal.shape_of(relation_id) operator(pg_catalog.=) pgtrickle_internal.shape_of(query_view)
    then
        perform pgtrickle_internal.drop_view(query_view);
        return;
    end if;
    perform pgtrickle_internal.prove_ownership(relation_id);
    if relation_id operator(pg_catalog.<>) pgtrickle_internal.relation_of(id) then
        -- another session gave it other columns while we waited for its lock
        relation_id := pgtrickle_internal.relation_of(id);
        perform pgtrickle_internal.prove_ownership(relation_id);
    end if;
    if pgtrickle_internal.shape_of(relation_id) operator(pg_catalog.=) pgtrickle_internal.shape_of(query_view) then
        perform pgtrickle_internal.guard_always(relation_id);
        perform pgtrickle_internal.change_query(relation_id, query_view, pg_catalog.current_schemas(false));
        perform pgtrickle_internal.enable_always_for(id);
    else
        perform pgtrickle_internal.reshape(id, relation_id, query_view);
    end if;
    perform pgtrickle_internal.drop_view(query_view);
end
$$;

-- canonical_of: the query of a view as PostgreSQL prints it: names are qualified, and constants are printed so
-- that they parse to the same value under any settings.
create or replace function pgtrickle_internal.canonical_of(query_view oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO' set intervalstyle = 'postgres' set bytea_output = 'hex' set extra_float_digits = 1
    set quote_all_identifiers = off
as $$ select rtrim(btrim(pg_get_viewdef(query_view), E' \n'), ';') $$;

-- change_query: the part of alter_query that needs more than the rights of the owner.
create or replace function pgtrickle_internal.change_query(relation_id oid, query_view oid, path name[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id);
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    perform pgtrickle_internal.check_view(query_view, relation_id);
    perform pgtrickle_internal.store_query(id, query_view, path);
end
$$;

-- store_query: give a stream table the query of a view, and have all its rows computed again.
create or replace function pgtrickle_internal.store_query(id bigint, query_view oid, path name[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update pgtrickle.pgt_stream_tables s set author_path = coalesce(path, '{}') where s.pgt_id = id;
    perform pgtrickle_internal.adopt_query(id, query_view);
    -- the state of another query has other columns
    perform pgtrickle_internal.drop_state(id);
    update pgtrickle.pgt_stream_tables s set
        settings = pgtrickle_internal.session_settings(), match_columns = pgtrickle_internal.match_columns(s.pgt_relid),
        effective_refresh_mode = null, downgrade_reason = null, status = 'INITIALIZING', is_populated = false,
        frontier = null, upstream_frontier = null, consecutive_errors = 0, last_error = null, retry_at = null,
        needs_reinit = true, reinit_reason = 'its query was altered'
    where s.pgt_id = id;
end
$$;

-- alter_status: suspend or resume a stream table.
create or replace function pgtrickle_internal.alter_status(id bigint, status text) returns void
language plpgsql
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
begin
    perform pgtrickle_internal.prove_ownership(relation_id);
    perform pgtrickle_internal.change_status(relation_id, pgtrickle_internal.one_of('status', status, '{ACTIVE,SUSPENDED}'));
end
$$;

create or replace function pgtrickle_internal.change_status(relation_id oid, status text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    before record;
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    select s.pgt_id, s.status into before from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id;
    update pgtrickle.pgt_stream_tables s set
        status = case when pgtrickle_internal.one_of('status', change_status.status, '{ACTIVE,SUSPENDED}') = 'SUSPENDED'
            then 'SUSPENDED' when s.is_populated then 'ACTIVE' else 'INITIALIZING' end,
        consecutive_errors = 0, retry_at = null,
        last_error = case when change_status.status = 'SUSPENDED' then s.last_error end
    where s.pgt_relid = relation_id;
    if before.status in ('SUSPENDED', 'ERROR') and upper(btrim(change_status.status)) = 'ACTIVE' then
        perform pgtrickle_internal.emit_alert('resumed', jsonb_build_object('pgt_id', before.pgt_id));
    end if;
end
$$;

-- alter_stream_table: change any part of a stream table; null leaves it unchanged.
create or replace function pgtrickle.alter_stream_table(
    name text, query text default null, schedule text default null, refresh_mode text default null,
    status text default null, cdc_mode text default null, append_only boolean default null,
    pooler_compatibility_mode boolean default null, tier text default null,
    diamond_consistency text default null, diamond_schedule_policy text default null,
    refresh_timeout text default null, on_divergence text default null, keep_changes text default null,
    auxiliary_results text default null
) returns void
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    asked jsonb := pgtrickle_internal.options(schedule, refresh_mode, null, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier, refresh_timeout,
        on_divergence, keep_changes, auxiliary_results);
begin
    if schedule is null then
        asked := asked operator(pg_catalog.-) 'schedule';
    end if;
    if query is not null then
        perform pgtrickle_internal.alter_query(id, query);
    end if;
    perform pgtrickle_internal.alter_options(id, asked);
    if status is not null then
        perform pgtrickle_internal.alter_status(id, status);
    end if;
end
$$;
comment on function pgtrickle.alter_stream_table(text, text, text, text, text, text, boolean, boolean, text, text, text, text, text, text, text) is
    E'Change the query, schedule, status or other options of a stream table; null leaves a value as it '
    'is. Call it with SELECT. You must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nquery: The new defining query. If its columns differ from those of the table, the call evaluates it and '
    'puts a table with the new columns and rows in the place of the old one, with its grants, comments, '
    'indexes and views. It is refused if a view or another stream table reads a column that does not remain.';

-- resume_stream_table: resume a suspended or failed stream table and reset its error count.
create or replace function pgtrickle.resume_stream_table(name text) returns void
language sql
as $$ select pgtrickle_internal.alter_status(pgtrickle_internal.stream_table(name), 'ACTIVE') $$;
comment on function pgtrickle.resume_stream_table(text) is
    E'Resume a suspended or failed stream table and reset its error count. Call it with SELECT. You must '
    'own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';
