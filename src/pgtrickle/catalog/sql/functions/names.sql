-- names: parse and print the names of relations.

-- The schema of helpers may have been dropped. No other role may own it, because it could replace the functions.
do $$
begin
    if to_regnamespace('pgtrickle_internal') is null then
        create schema pgtrickle_internal;
    elsif (select n.nspowner <> quote_ident(current_user)::regrole from pg_catalog.pg_namespace n where n.nspname = 'pgtrickle_internal') then
        raise exception 'the schema pgtrickle_internal belongs to another role' using
            errcode = 'insufficient_privilege', hint = 'Drop that schema, or install pgtrickle as its owner.';
    end if;
end
$$;

-- sidecar_role: the role that owns the schemas and that the sidecar acts as.
create or replace function pgtrickle.sidecar_role() returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$ select nspowner from pg_namespace where nspname = 'pgtrickle' $$;
comment on function pgtrickle.sidecar_role() is
    'The role that owns pgtrickle and that the sidecar acts as. Call it with SELECT. Everyone may call '
    'it.';

-- may_act_as: whether the caller may act as a role. Since PostgreSQL 16, membership alone does not imply that.
create or replace function pgtrickle_internal.may_act_as(role_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select pg_has_role(role_id, 'USAGE') or pg_has_role(role_id,
        case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end)
$$;

-- printed: the name of a relation as written in SQL, always with its schema.
create or replace function pgtrickle_internal.printed(relation oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('%I.%I', n.nspname, c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation
$$;

-- name_parts: the parts of 'name' or 'schema.name', quoted as in SQL. Raises 42602 for anything else.
create or replace function pgtrickle_internal.name_parts(given text) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    parts text[];
begin
    begin
        parts := parse_ident(given);
    exception when invalid_parameter_value then
        parts := null;
    end;
    if parts is null or cardinality(parts) not in (1, 2)
        or exists (select from unnest(parts) part where part = '' or octet_length(part) > 63)
    then
        raise exception '%', format('%L is not the name of a table', given) using
            errcode = 'invalid_name',
            hint = 'Write name or schema.name, in double quotes where a part has capitals or special '
                'characters; a part has at most 63 bytes.';
    end if;
    return parts;
end
$$;

-- new_name: schema and name of a table to be created; without a schema, the one in which the caller creates
-- tables. Runs as the caller, under the caller's search_path.
create or replace function pgtrickle_internal.new_name(given text) returns text[]
language plpgsql stable
as $$
declare
    parts text[] := pgtrickle_internal.name_parts(given);
begin
    if pg_catalog.cardinality(parts) operator(pg_catalog.=) 2 then
        return parts;
    end if;
    if pg_catalog.current_schema() is null then
        raise exception '%', pg_catalog.format('there is no schema to create %I in', parts[1]) using
            errcode = 'invalid_schema_name',
            hint = 'Write schema.name, or set search_path to a schema that exists.';
    end if;
    return pg_catalog.array_prepend(pg_catalog.current_schema()::text, parts);
end
$$;

-- find_stream_table: the id of a stream table, or null. A bare name is resolved along the caller's search_path. A
-- stream table whose table was dropped is still found by its last name. Other roles may control what the
-- search_path leads to, so every operator is qualified.
create or replace function pgtrickle_internal.find_stream_table(given text) returns bigint
language plpgsql stable
as $$
declare
    parts text[] := pgtrickle_internal.name_parts(given);
    printed_name text;
    found_id bigint;
begin
    select pg_catalog.string_agg(pg_catalog.quote_ident(part), '.' order by number) into printed_name
    from pg_catalog.unnest(parts) with ordinality as p(part, number);
    select s.pgt_id into found_id
    from pgtrickle.pgt_stream_tables s
    where s.pgt_relid operator(pg_catalog.=) pg_catalog.to_regclass(printed_name)::pg_catalog.oid and not pgtrickle.is_copy();
    if found_id is null then
        select s.pgt_id into found_id
        from pgtrickle.pgt_stream_tables s
        where s.pgt_name operator(pg_catalog.=) parts[pg_catalog.cardinality(parts)]
            and s.pgt_schema operator(pg_catalog.=) any (case when pg_catalog.cardinality(parts) operator(pg_catalog.=) 2
                then array[parts[1]::pg_catalog.name] else pg_catalog.current_schemas(false) end)
            and pgtrickle_internal.bound_relation(s.pgt_id) is null
        order by pg_catalog.array_position(pg_catalog.current_schemas(false), s.pgt_schema)
        limit 1;
    end if;
    return found_id;
end
$$;

-- stream_table: like find_stream_table, but raises an error if there is none.
create or replace function pgtrickle_internal.stream_table(given text) returns bigint
language plpgsql stable
as $$
declare
    found_id bigint := pgtrickle_internal.find_stream_table(given);
begin
    if found_id is null then
        raise exception '%', pg_catalog.format('there is no stream table %s', given) using
            errcode = 'TS002',
            hint = 'select * from pgtrickle.pgt_status() lists all of them. A name without a schema is looked up '
                'in the search_path.';
    end if;
    return found_id;
end
$$;
