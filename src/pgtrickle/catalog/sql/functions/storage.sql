-- storage: the table of a stream table: where it may be, and what it needs. Runs as the caller, who owns the table.

-- check_room: refuse a name that is in use, or a schema that the caller or the sidecar cannot use.
create or replace function pgtrickle_internal.check_room(schema_name text, table_name text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    namespace oid := (select oid from pg_namespace where nspname = schema_name);
    advice text := 'Choose another name.';
begin
    perform pgtrickle_internal.check_schema(schema_name);
    if exists (select from pg_class where relname = table_name and relnamespace = namespace)
        or exists (select from pg_type where typname = table_name and typnamespace = namespace)
    then
        if pgtrickle_internal.find_stream_table(format('%I.%I', schema_name, table_name)) is not null then
            advice := advice || ' To change this stream table, use pgtrickle.create_or_replace_stream_table.';
        end if;
        raise exception '%', format('%I.%I already exists', schema_name, table_name) using
            errcode = 'duplicate_table', hint = advice;
    end if;
    perform pgtrickle_internal.check_schema_rights(schema_name);
end
$$;

-- check_schema: refuse a schema in which no stream table can be.
create or replace function pgtrickle_internal.check_schema(schema_name text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from pg_namespace where nspname = schema_name) then
        raise exception '%', format('schema %I does not exist', schema_name) using
            errcode = 'invalid_schema_name', hint = 'Create it first, or correct the name.';
    end if;
    if schema_name in ('pgtrickle', 'pgtrickle_internal', 'pgtrickle_changes', 'pgtrickle_state')
        or schema_name ~ '^pg_'
    then
        raise exception '%', format('cannot create a stream table in schema %I', schema_name) using
            errcode = 'invalid_schema_name', hint = 'This schema is reserved. Use another one.';
    end if;
end
$$;

-- check_schema_rights: refuse a schema that the caller or the sidecar cannot use.
create or replace function pgtrickle_internal.check_schema_rights(schema_name text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    sidecar oid := pgtrickle.sidecar_role();
begin
    if not has_schema_privilege(schema_name, 'CREATE') then
        raise exception '%', format('you may not create tables in schema %I', schema_name) using
            errcode = 'insufficient_privilege',
            hint = format('grant create on schema %I to %I', schema_name, current_user);
    end if;
    if not has_schema_privilege(sidecar, schema_name, 'USAGE') then
        raise exception '%', format('the role of the sidecar may not use schema %I', schema_name) using
            errcode = 'insufficient_privilege',
            hint = format('grant usage on schema %I to %I', schema_name, pg_get_userbyid(sidecar));
    end if;
end
$$;

-- create_storage: create the empty table with the columns of the view, and what a stream table needs.
create or replace function pgtrickle_internal.create_storage(schema_name text, table_name text, query_view oid)
returns oid
language plpgsql
as $$
declare
    printed text := pg_catalog.format('%I.%I', schema_name, table_name);
begin
    perform pgtrickle_internal.check_columns(query_view);
    begin
        -- a refresh finds rows by ctid, which other access methods may not support
        execute pg_catalog.format('create table %s using heap as table %s with no data',
            printed, pgtrickle_internal.printed(query_view));
    exception when others then
        raise exception 'a table cannot have the columns of this query: %', sqlerrm using
            errcode = sqlstate, hint = 'Give each column a name and a type that a table can have.';
    end;
    perform pgtrickle_internal.equip_storage(printed::pg_catalog.regclass);
    if not pgtrickle_internal.leaves_row_index(printed::pg_catalog.regclass) then
        perform pgtrickle_internal.create_row_index(printed::pg_catalog.regclass);
    end if;
    return printed::pg_catalog.regclass;
end
$$;

-- check_columns: refuse a query without columns.
create or replace function pgtrickle_internal.check_columns(query_view oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(pgtrickle_internal.columns_of(query_view)) = 0 then
        raise exception 'the query has no columns' using
            errcode = 'invalid_table_definition', hint = 'Select at least one column.';
    end if;
end
$$;

-- equip_storage: give a table its guard, the grants for the sidecar, and a proof of ownership.
create or replace function pgtrickle_internal.equip_storage(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    printed text := pgtrickle_internal.printed(relation_id);
begin
    execute format('create trigger pgtrickle_guard before insert or update or delete or truncate '
        'on %s for each statement execute function pgtrickle.refuse_direct_write()', printed);
    execute format('alter table %s enable always trigger pgtrickle_guard', printed);
    execute format('grant select, insert, update, delete, trigger on %s to %I',
        printed, pg_get_userbyid(pgtrickle.sidecar_role()));
    -- a publication of all tables, or of the schema, already includes it
    perform pgtrickle_internal.identify_published_rows(relation_id);
    perform pgtrickle_internal.prove_ownership(relation_id);
end
$$;
