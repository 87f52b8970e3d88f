-- drop: drop the table as the caller, then remove everything else as the sidecar's role.

-- drop_stream_table: drop a stream table; with cascade, also everything that depends on it.
create or replace function pgtrickle.drop_stream_table(name text, cascade boolean default false) returns void
language plpgsql
as $$
begin
    perform pgtrickle_internal.drop_by_id(pgtrickle_internal.stream_table(name), cascade);
end
$$;
comment on function pgtrickle.drop_stream_table(text, boolean) is
    E'Drop a stream table; with cascade, also everything that depends on it. Call it with SELECT. You '
    'must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\ncascade: Whether to drop the stream tables and views that read it as well. Without it, the call is '
    'refused if there are any.';

create or replace function pgtrickle_internal.drop_by_id(id bigint, cascade boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.bound_relation(id);
    dependants bigint[] := array(
        select d.pgt_id from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
        where s.pgt_id = id and d.source_type = 'stream_table' order by 1);
    dependant bigint;
begin
    perform pgtrickle_internal.check_not_copy();
    if dependants <> '{}' and not cascade then
        raise exception '%', format('other stream tables read %s: %s', pgtrickle_internal.shown_name(id), (
                select string_agg(pgtrickle_internal.shown_name(s.pgt_id), ', ' order by s.pgt_id)
                from pgtrickle.pgt_stream_tables s where s.pgt_id = any (dependants))) using
            errcode = 'dependent_objects_still_exist',
            hint = 'Drop them first, or drop them too with cascade => true.';
    end if;
    foreach dependant in array dependants loop
        if exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = dependant) then
            perform pgtrickle_internal.drop_by_id(dependant, cascade);
        end if;
    end loop;
    if relation_id is null and pgtrickle_internal.named_relation(id) is not null then
        raise warning '%', format('table %s was not dropped: pgtrickle did not create it', pgtrickle_internal.shown_name(id));
    elsif relation_id is not null then
        perform pgtrickle_internal.drop_publication_with(relation_id);
        execute format('drop table %s %s', pgtrickle_internal.printed(relation_id), case when cascade then 'cascade' end);
    end if;
    perform pgtrickle_internal.forget(id);
end
$$;

-- may_forget: whether a stream table has lost its table and the caller may act as the owner of that table. A
-- restore may create the table again, so the definition may still be needed.
create or replace function pgtrickle_internal.may_forget(id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_stream_tables s
        where s.pgt_id = id and (pg_has_role(s.pgt_owner, 'USAGE') or pgtrickle_internal.may_act_as(pgtrickle.sidecar_role())))
        and pgtrickle_internal.bound_relation(id) is null and not pgtrickle.is_copy()
$$;

-- own_remains: stream tables without a table that the current role may remove. See own_requests for why this is a
-- view.
create or replace view pgtrickle_internal.own_remains with (security_barrier) as
select s.pgt_id from pgtrickle.pgt_stream_tables s where pgtrickle_internal.may_forget(s.pgt_id);

-- forget: remove a stream table whose table no longer exists. Runs as the caller.
create or replace function pgtrickle_internal.forget(id bigint) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = id) then
        return;
    end if;
    perform pgtrickle_internal.check_not_copy();
    if pgtrickle_internal.bound_relation(id) is not null then
        raise exception 'the table of this stream table still exists' using
            errcode = 'object_not_in_prerequisite_state', hint = 'Use pgtrickle.drop_stream_table(name).';
    end if;
    delete from pgtrickle_internal.own_remains r where r.pgt_id = id;
    -- the sidecar may have removed it while we waited for its lock
    if not found and exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = id) then
        raise exception '%', format('you must own stream table %s to remove what is left of it', pgtrickle_internal.shown_name(id))
        using errcode = 'insufficient_privilege', hint = 'The sidecar removes it, unless a table of that name was created again.';
    end if;
end
$$;

-- remove_rest: when the catalog row of a stream table is deleted, remove everything that the sidecar keeps for it.
create or replace function pgtrickle_internal.remove_rest() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    sources oid[] := array(
        select d.source_relid from pgtrickle.pgt_dependencies d
        where d.pgt_id = old.pgt_id and d.source_type not in ('view', 'function') order by 1);
begin
    perform pgtrickle_internal.drop_state(old.pgt_id);
    perform pgtrickle_internal.drop_kept_changes(old.pgt_id);
    delete from pgtrickle.pgt_dependencies d where d.pgt_id = old.pgt_id;
    -- the sidecar releases a table that is busy now later
    perform pgtrickle_internal.release_source(source) from unnest(sources) source;
    return old;
end
$$;
create or replace trigger remove_rest before delete on pgtrickle.pgt_stream_tables
    for each row execute function pgtrickle_internal.remove_rest();

-- drop_state: drop what the sidecar keeps for a stream table; everything is named <something>_<id>, or <something>_<id>_<number>
-- for its auxiliary results.
create or replace function pgtrickle_internal.drop_state(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    kept text;
begin
    for kept in
        select format('table %s', pgtrickle_internal.printed(c.oid)) from pg_class c
        where c.relnamespace = 'pgtrickle_state'::regnamespace and c.relkind = 'r'
            and c.relname ~ format('^[a-z]+_%s(_[0-9]+)?$', id)
        union all
        select format('function %s', p.oid::regprocedure) from pg_proc p
        where p.pronamespace = 'pgtrickle_state'::regnamespace and p.proname ~ format('^[a-z]+_%s(_[0-9]+)?$', id)
        -- tables first: an index may use a function
        order by 1 desc
    loop
        execute 'drop ' || kept;
    end loop;
end
$$;

-- drop_auxiliaries: drop the auxiliary results of a stream table, and their states; everything is named <something>_<id>_<number>.
-- The tables into which tasks write stay: other connections of the same refresh use them.
create or replace function pgtrickle_internal.drop_auxiliaries(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    kept text;
begin
    for kept in
        select format('table %s', pgtrickle_internal.printed(c.oid)) from pg_class c
        where c.relnamespace = 'pgtrickle_state'::regnamespace and c.relkind = 'r'
            and c.relname ~ format('^(auxiliary|moved|state|hash)_%s_[0-9]+$', id)
        union all
        select format('function %s', p.oid::regprocedure) from pg_proc p
        where p.pronamespace = 'pgtrickle_state'::regnamespace and p.proname ~ format('^(auxiliary|moved|state|hash)_%s_[0-9]+$', id)
        -- tables first: an index may use a function
        order by 1 desc
    loop
        execute 'drop ' || kept;
    end loop;
end
$$;
