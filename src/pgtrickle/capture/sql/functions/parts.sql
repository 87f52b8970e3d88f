-- parts: the objects that all trigger functions use, and the functions that create them again if they were
-- removed. Run as the sidecar's role.

-- change_table: the OID of a table in pgtrickle_changes, even if we have lost USAGE on that schema.
create or replace function pgtrickle_internal.change_table(table_name text) returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'pgtrickle_changes' and c.relname = table_name
$$;

-- lacks_parts: whether an object that all trigger functions use is missing, or may not be used.
create or replace function pgtrickle_internal.lacks_parts() returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select not coalesce(has_schema_privilege(pgtrickle.sidecar_role(), n.id, 'USAGE')
        and has_function_privilege(pgtrickle.sidecar_role(), pgtrickle_internal.state_function(), 'EXECUTE')
        and exists (select from pg_proc p where p.pronamespace = n.id and p.proname = 'has_columns'
            and has_function_privilege(pgtrickle.sidecar_role(), p.oid, 'EXECUTE'))
        and (select bool_and(coalesce(has_table_privilege(pgtrickle.sidecar_role(), t.id, 'INSERT')
                and has_table_privilege(pgtrickle.sidecar_role(), t.id, 'SELECT')
                and pgtrickle_internal.is_touched(t.id), false))
            from unnest(array[pgtrickle_internal.change_table('touched_0'), pgtrickle_internal.change_table('touched_1')]) t(id)), false)
    from (select (select oid from pg_namespace where nspname = 'pgtrickle_changes')) n(id)
$$;

-- state_function: the OID of capture_state, by which a trigger function checks that it still exists.
create or replace function pgtrickle_internal.state_function() returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select p.oid from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'pgtrickle_changes' and p.proname = 'capture_state'
$$;

-- is_touched: whether a relation has the columns of a table of touched sources.
create or replace function pgtrickle_internal.is_touched(relation_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select count(*) = 3 from pg_attribute a where a.attrelid = relation_id and not a.attisdropped
        and (a.attname, a.atttypid) in
            (('xid', 'xid8'::regtype), ('source', 'oid'::regtype), ('touched_at', 'timestamptz'::regtype))
$$;

-- create_touched: create one of the two tables of touched sources, unless it exists.
create or replace function pgtrickle_internal.create_touched(side text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
    set default_tablespace = '' set default_table_access_method = heap
as $$
begin
    if pgtrickle_internal.is_touched(to_regclass(side)) then
        execute format('grant all on %s to %I', side, pg_get_userbyid(pgtrickle.sidecar_role()));
        return;
    end if;
    execute format('drop table if exists %s', side);
    execute format('create table %s (xid xid8 not null default pg_current_xact_id(), source oid not null, '
        'touched_at timestamptz not null default clock_timestamp())', side);
    execute format('create index on %s (xid)', side);
end
$$;

-- create_parts: create what all trigger functions use, as far as it is missing; its functions are replaced. If a
-- function has another OID than before, trigger functions do not find it until they are replaced too.
create or replace function pgtrickle_internal.create_parts() returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $parts$
declare
    own text := quote_ident(pg_get_userbyid(pgtrickle.sidecar_role()));
    existing text;
begin
    if not exists (select from pg_namespace where nspname = 'pgtrickle_changes') then
        create schema pgtrickle_changes;
        revoke all on schema pgtrickle_changes from public;
    end if;
    execute format('grant all on schema pgtrickle_changes to %s', own);
    -- only a role that may execute a function can replace it
    for existing in
        select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname = 'pgtrickle_changes' and p.proname in ('has_columns', 'capture_state')
    loop
        execute format('grant execute on function %s to %s', existing, own);
    end loop;
    perform pgtrickle_internal.create_touched('pgtrickle_changes.touched_0');
    perform pgtrickle_internal.create_touched('pgtrickle_changes.touched_1');

    -- has_columns: whether a relation has these columns of these types now. It asks the parser and no catalog,
    -- because the snapshot of a repeatable-read writer may be older than the columns that its statement has.
    create or replace function pgtrickle_changes.has_columns(relation_id oid, names name[], types oid[]) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
    as $function$
    declare
        found_types oid[];
    begin
        if names = '{}' then
            return true;
        end if;
        execute format('select array[%s]::oid[] from (select null::%s) as t(r)', (
            select string_agg(format('pg_typeof((r).%I)', u.name), ', ' order by u.number)
            from unnest(names) with ordinality as u(name, number)), relation_id::regclass) into found_types;
        return found_types = types;
    exception when others then
        -- what was altered beyond recognition is altered
        return false;
    end
    $function$;

    -- one of an earlier version would be taken for this one
    for existing in
        select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname = 'pgtrickle_changes' and p.proname = 'capture_state' and p.pronargs <> 10
    loop
        execute format('drop function %s', existing);
    end loop;

    -- capture_state: what a trigger function can do now: 0 capture the change, 1 mark that there was one, 2 nothing,
    -- 3 ask first whether the source still has the partitions and children `tree`, itself included.
    -- Not immutable, but declared so: compose_capture says why. It runs as the owner of the trigger function.
    -- Asks nothing of a snapshot, which may be older than what the writer's statement has found; only the answer 3
    -- comes from one, and is asked again.
    create or replace function pgtrickle_changes.capture_state(
        source oid, source_columns name[], source_types oid[], buffer oid, buffer_columns name[], buffer_types oid[],
        touched_0 oid, touched_1 oid, catalog oid, tree oid[]
    ) returns integer
    language plpgsql immutable set search_path = pg_catalog, pg_temp
    as $function$
    begin
        -- without a catalog nobody reads what is captured; the privilege is null where the relation is gone
        if has_table_privilege(catalog, 'SELECT') is null
            or (has_table_privilege(buffer, 'INSERT') and has_table_privilege(touched_0, 'INSERT')
                and has_table_privilege(touched_1, 'INSERT')) is not true
            or not pgtrickle_changes.has_columns(buffer, '{xid,weight}', array['xid8'::regtype, 'int2'::regtype]::oid[])
            or not pgtrickle_changes.has_columns(touched_0, '{xid,source}', array['xid8'::regtype, 'oid'::regtype]::oid[])
            or not pgtrickle_changes.has_columns(touched_1, '{xid,source}', array['xid8'::regtype, 'oid'::regtype]::oid[])
        then
            return 2;
        end if;
        if not pgtrickle_changes.has_columns(source, source_columns, source_types)
            or not pgtrickle_changes.has_columns(buffer, buffer_columns, buffer_types)
        then
            return 1;
        end if;
        if tree <> array(
            with recursive present(id) as (
                select source
                union
                select i.inhrelid from present p join pg_inherits i on i.inhparent = p.id
            )
            select p.id from present p order by p.id)
        then
            return 3;
        end if;
        return 0;
    exception when others then
        return 2;
    end
    $function$;
    revoke all on function pgtrickle_changes.has_columns, pgtrickle_changes.capture_state from public;
end
$parts$;

select pgtrickle_internal.create_parts();

-- create_state: create the schema of states if it was removed; everything is recomputed then. Returns true if it
-- was missing.
create or replace function pgtrickle_internal.create_state() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pg_namespace where nspname = 'pgtrickle_state') then
        return false;
    end if;
    create schema pgtrickle_state;
    revoke all on schema pgtrickle_state from public;
    update pgtrickle.pgt_stream_tables s set needs_reinit = true,
        reinit_reason = coalesce(s.reinit_reason, 'the schema pgtrickle_state was dropped');
    delete from pgtrickle.pgt_feeds;
    delete from pgtrickle.pgt_batches;
    update pgtrickle.pgt_sources s set version = null, filled_at = null where s.trigger_level = 'none';
    perform pgtrickle_internal.copy_source(s.source_relid, s.columns_captured)
    from pgtrickle.pgt_sources s join pg_class c on c.oid = s.source_relid where s.trigger_level = 'none';
    return true;
end
$$;

-- restore_guards: give every stream table its guard again. The name shows whether the table is the one that the
-- catalog means: in a copy its OID may belong to any table.
create or replace function pgtrickle_internal.restore_guards() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid;
begin
    for relation_id in
        select c.oid from pgtrickle.pgt_stream_tables s
        join pg_class c on c.oid = s.pgt_relid and c.relname = s.pgt_name
        join pg_namespace n on n.oid = c.relnamespace and n.nspname = s.pgt_schema
        where has_table_privilege(c.oid, 'TRIGGER') and not exists (
            select from pg_trigger t where t.tgrelid = c.oid and t.tgname = 'pgtrickle_guard')
    loop
        execute format('create trigger pgtrickle_guard before insert or update or delete or truncate '
            'on %s for each statement execute function pgtrickle.refuse_direct_write()',
            pgtrickle_internal.printed(relation_id));
    end loop;
end
$$;
