-- ground: what a stream table relies on, found and recorded when its query is analysed.

-- mentioned_objects: functions, types and operators that the body of a function may use. PostgreSQL does not
-- record them for a body that is stored as text, so this is a superset: all functions whose name occurs before a
-- parenthesis, all types whose name occurs, and all operators whose symbol occurs, also in comments and strings.
-- Operators of extensions are left out: they are not replaced one by one.
create or replace function pgtrickle_internal.mentioned_objects(function_id oid) returns table (classid oid, objid oid)
language sql stable rows 3 set search_path = pg_catalog, pg_temp
as $$
    with body(text) as (
        select p.prosrc from pg_proc p join pg_language l on l.oid = p.prolang and l.lanname not in ('c', 'internal')
        where p.oid = function_id and p.prosqlbody is null
    ),
    words(name, is_called) as (
        select coalesce(found[1], lower(found[2]))::name, bool_or(found[3] is not null)
        from body b cross join lateral regexp_matches(b.text, '(?:"([^"]+)"|([[:alpha:]_][[:alnum:]_$]*))'
            '((?:\s|/\*(?:[^*]|\*+[^*/])*\*+/|--[^\n]*\n)*\()?', 'g') found
        group by 1
    ),
    found(classid, objid, schema_id) as (
        select 'pg_proc'::regclass::oid, p.oid, p.pronamespace from words w join pg_proc p on p.proname = w.name
        where w.is_called and p.oid <> function_id
        union all
        -- a row type has the name of its table; naming the type of a view does not read the view
        select 'pg_type'::regclass, t.oid, t.typnamespace from words w join pg_type t on t.typname = w.name
        left join pg_class c on c.oid = t.typrelid
        where t.typtype <> 'p' and coalesce(c.relkind in ('c', 'r', 'p', 'f'), true)
        union all
        select 'pg_operator'::regclass, o.oid, o.oprnamespace from body b join pg_operator o on strpos(b.text, o.oprname) > 0
        where not exists (select from pg_depend d where d.classid = 'pg_operator'::regclass and d.objid = o.oid
            and d.deptype = 'e')
    )
    select f.classid, f.objid from found f join pg_namespace n on n.oid = f.schema_id
    where f.objid >= 16384 and n.nspname !~ '^pgtrickle(_|$)'
$$;

-- ground_objects: everything that the query of a view relies on, including what its functions may call and use.
create or replace function pgtrickle_internal.ground_objects(query_view oid, reader oid)
returns table (classid oid, objid oid)
language sql stable rows 20 set search_path = pg_catalog, pg_temp
as $$
    with recursive reached(classid, objid) as (
        select o.classid, o.objid from pgtrickle_internal.reached_objects(query_view, reader) o
        union
        select n.classid, n.objid from reached r
        cross join lateral (
            select c.* from pgtrickle_internal.mentioned_objects(r.objid) m
            cross join lateral pgtrickle_internal.closure_of(array[m.classid], array[m.objid]) c
        ) n
        where r.classid = 'pg_proc'::regclass
    )
    select r.classid, r.objid from reached r
$$;

-- read_relations: the relations that a function reads. In a body that is stored as text these are names of
-- relations after FROM, JOIN and similar keywords; dynamic SQL is not covered.
create or replace function pgtrickle_internal.read_relations(function_id oid) returns setof oid
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select c.oid from pg_proc p
    cross join lateral regexp_matches(p.prosqlbody::text, ':relid (\d+)', 'g') found
    join pg_class c on c.oid = found[1]::oid and c.relkind in ('r', 'p', 'v', 'm', 'f')
    where p.oid = function_id and p.prosqlbody is not null
    union
    select c.oid from pg_proc p
    join pg_language l on l.oid = p.prolang and l.lanname in ('sql', 'plpgsql')
    cross join lateral regexp_replace(regexp_replace(regexp_replace(p.prosrc, '--[^\n]*', ' ', 'g'),
        '/\*.*?\*/', ' ', 'g'), '''(?:[^'']|'''')*''', ' ', 'g') as body
    cross join lateral regexp_matches(body,
        '(?:\m(?:from|join|table|into|update|using)\M[\s(]+|,\s*)(?:(?:only|lateral)\s+)?'
        '(?:(?:"([^"]+)"|([[:alpha:]_][[:alnum:]_$]*))\s*\.\s*)?(?:"([^"]+)"|([[:alpha:]_][[:alnum:]_$]*))'
        '(?![[:alnum:]_$"]|\s*[.(])', 'gi') found
    join pg_class c on c.relname = coalesce(found[3], lower(found[4]))::name and c.relkind in ('r', 'p', 'v', 'm', 'f')
    join pg_namespace n on n.oid = c.relnamespace and n.nspname !~ '^pg_(toast|temp)'
        and (coalesce(found[1], lower(found[2])) is null or n.nspname = coalesce(found[1], lower(found[2])))
    where p.oid = function_id and p.prosqlbody is null
$$;

-- check_reading_functions: refuse a stream table whose ground has a function that reads tables: changes of those
-- tables would not be noticed.
create or replace function pgtrickle_internal.check_reading_functions(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    found record;
begin
    select g.name as function, pgtrickle_internal.printed(r.id) as relation into found
    from pgtrickle.pgt_ground g cross join lateral pgtrickle_internal.read_relations(g.object_id) r(id)
    where g.pgt_id = check_reading_functions.id and g.kind = 'function'
    order by g.object_id, r.id limit 1;
    if found is not null then
        raise exception '%', format('the query calls function %s, which reads %s', found.function, found.relation) using
            errcode = 'feature_not_supported',
            hint = 'pgtrickle sees changes only of tables that the query itself names. Join the table in the query, or '
                'pass what the function needs as an argument.';
    end if;
end
$$;

-- searches_text: whether a function parses text for searching, or takes or returns the result. `text @@ text` does it
-- without a type that says so.
create or replace function pgtrickle_internal.searches_text(function_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce((select '{regconfig,regdictionary,tsvector,tsquery}'::regtype[]::oid[]
            && (p.proargtypes::oid[] || p.prorettype) or p.oid = 'ts_match_tt'::regproc
        from pg_proc p where p.oid = function_id), false)
$$;

-- uses_text_search: whether the body of a function may use text search.
create or replace function pgtrickle_internal.uses_text_search(function_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pg_proc p where p.oid = function_id
            and p.prosrc ~* 'tsvector|tsquery|\mts_|regconfig|regdictionary|@@')
        or exists (select from pg_proc p cross join lateral regexp_matches(p.prosqlbody::text, ':(?:funcid|opfuncid) (\d+)', 'g') found
            where p.oid = function_id and pgtrickle_internal.searches_text(found[1]::oid))
$$;

-- ground_of: everything that the query of a view would rely on as the query of a stream table, in its current
-- state. One statement, so one snapshot: the objects and their contents are consistent.
create or replace function pgtrickle_internal.ground_of(id bigint, query_view oid, reader oid)
returns table (kind text, object_id oid, detail text, name text, version bigint, content jsonb)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with reached as materialized (
        select o.classid, o.objid from pgtrickle_internal.ground_objects(query_view, reader) o
    ),
    relations as materialized (
        select r.relation_id, c.relkind, c.relnamespace,
            array_agg(distinct a.attname) filter (where a.attname is not null) as names,
            array_agg(distinct a.attcollation) filter (where a.attcollation <> 0) as collations,
            array_agg(distinct a.atttypid) filter (where a.atttypid <> 0) as types
        from pgtrickle_internal.relations_of(query_view, reader) r join pg_class c on c.oid = r.relation_id
        left join pg_attribute a on a.attrelid = r.relation_id and a.attnum = any (r.columns)
        group by 1, 2, 3
    ),
    rules as materialized (select w.action from pgtrickle_internal.rules_of(query_view, reader) w),
    functions as materialized (select f.id from pgtrickle_internal.functions_of(query_view, reader) f(id)),
    found(kind, object_id, detail, name, content) as (
        select 'itself', s.pgt_relid, '', pgtrickle_internal.printed(s.pgt_relid), pgtrickle_internal.own_content(s.pgt_relid)
        from pgtrickle.pgt_stream_tables s where s.pgt_id = ground_of.id
        union all
        select 'source', m.id, '', pgtrickle_internal.printed(m.id),
            pgtrickle_internal.source_content(m.id, m.names, m.roots)
        from (
            select t.id, array_agg(distinct n.name) filter (where n.name is not null) as names,
                jsonb_agg(distinct r.relation_id::bigint) as roots
            from relations r cross join lateral pgtrickle_internal.tree_of(r.relation_id) t(id)
            left join lateral unnest(r.names) n(name) on true
            where r.relkind <> 'v' group by t.id
        ) m
        union all
        select 'view', r.relation_id, '', pgtrickle_internal.printed(r.relation_id), pgtrickle_internal.view_content(r.relation_id)
        from relations r where r.relkind = 'v'
        union all
        select 'function', p.oid, '', p.oid::regprocedure::text, pgtrickle_internal.function_fingerprint(p.oid)
        from reached o join pg_proc p on p.oid = o.objid where o.classid = 'pg_proc'::regclass
        union all
        select 'type', t.oid, '', format_type(t.oid, null), pgtrickle_internal.type_content(t.oid)
        from reached o join pg_type t on t.oid = o.objid where o.classid = 'pg_type'::regclass
        union all
        select 'family', f.oid, '', f.opfname, pgtrickle_internal.family_content(f.oid)
        from reached o join pg_opfamily f on f.oid = o.objid where o.classid = 'pg_opfamily'::regclass
        union all
        select 'collation', c.oid, '', c.oid::regcollation::text, pgtrickle_internal.collation_content(c.oid)
        from pg_collation c where c.oid in (
            select unnest(r.collations) from relations r
            union select o.objid from reached o where o.classid = 'pg_collation'::regclass
            union select found[1]::oid from rules w, regexp_matches(w.action, ':\w*collid (\d+)', 'g') found)
        union all
        select 'schema', n.oid, '', n.nspname, jsonb_build_object('name', n.nspname)
        from pg_namespace n where n.oid >= 16384 and n.oid in (
            select r.relnamespace from relations r
            union select p.pronamespace from functions f join pg_proc p on p.oid = f.id
            union select t.typnamespace from reached o join pg_type t on t.oid = o.objid
            union select p.oprnamespace from reached o join pg_operator p on p.oid = o.objid
            union select l.collnamespace from reached o join pg_collation l on l.oid = o.objid)
            or n.nspname = 'public'
        union all
        select 'names', 0, n.names, 'functions', pgtrickle_internal.names_content(n.names)
        from (select string_agg(distinct p.proname, chr(10) order by p.proname) from functions f
            join pg_proc p on p.oid = f.id) n(names) where n.names is not null
        union all
        select 'conversions', 0, '', 'casts and operators', pgtrickle_internal.conversions_content(
            (select coalesce(jsonb_agg(distinct t.id::bigint), '[]') from (
                select unnest(r.types) from relations r
                union select o.objid from reached o where o.classid = 'pg_type'::regclass) t(id)),
            (select coalesce(jsonb_agg(distinct o.oprname), '[]') from functions f
                join pg_operator o on o.oprcode = f.id))
        union all
        select 'text_search', 0, '', 'text search', pgtrickle_internal.text_search_content()
        where exists (select from functions f where pgtrickle_internal.searches_text(f.id))
            or exists (select from reached o where o.classid = 'pg_proc'::regclass
                and pgtrickle_internal.uses_text_search(o.objid))
        union all
        select 'roles', 0, '', 'roles', '{}'
    )
    select f.kind, f.object_id, f.detail, f.name, pgtrickle_internal.version_of(f.kind, f.object_id, f.detail), f.content
    from found f
$$;

-- record_ground: record what a stream table relies on, in its current state.
create or replace function pgtrickle_internal.record_ground(id bigint, query_view oid, reader oid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    delete from pgtrickle.pgt_ground g where g.pgt_id = record_ground.id;
    insert into pgtrickle.pgt_ground (pgt_id, kind, object_id, detail, name, version, content)
    select record_ground.id, g.* from pgtrickle_internal.ground_of(record_ground.id, query_view, reader) g;
    update pgtrickle.pgt_stream_tables s set ground_generation = s.ground_generation + 1, ground_error = null
    where s.pgt_id = record_ground.id;
$$;

-- note_refused: also watch what the query of a stream table relies on now that it is refused, because that may be
-- the cause: a partition or table that was not part of it before, and the names that it reads.
create or replace function pgtrickle_internal.note_refused(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    query_view oid;
begin
    insert into pgtrickle.pgt_ground (pgt_id, kind, object_id, detail, name)
    values (id, 'bindings', 0, id::text, 'names')
    on conflict do nothing;
    begin
        query_view := pgtrickle_internal.view_of_stored(id);
    exception when others then
        -- PostgreSQL itself cannot resolve the query; the names in it are watched already
        return;
    end;
    insert into pgtrickle.pgt_ground (pgt_id, kind, object_id, detail, name, version, content)
    select note_refused.id, g.* from pgtrickle_internal.ground_of(note_refused.id, query_view, (
        select c.relowner from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = note_refused.id)) g
    on conflict do nothing;
    perform pgtrickle_internal.drop_view(query_view);
end
$$;

-- adopt_ground: record the ground of a stream table that was defined before grounds were recorded. What it relies
-- on is unchanged since the analysis, or its dependencies differ.
create or replace function pgtrickle_internal.adopt_ground(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    query_view oid := pgtrickle_internal.view_of_stored(id);
begin
    perform pgtrickle_internal.record_ground(id, query_view, (
        select c.relowner from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = adopt_ground.id));
    perform pgtrickle_internal.drop_view(query_view);
end
$$;

-- intact_readers: the stream tables for which no trigger of a source, its partitions or children has changed since
-- it was recorded.
create or replace function pgtrickle_internal.intact_readers(source oid) returns bigint[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(d.pgt_id), '{}') from pgtrickle.pgt_dependencies d
    where d.source_relid = source and d.source_type in ('table', 'stream_table') and not exists (
        select from pgtrickle.pgt_ground g join pgtrickle_internal.tree_of(source) t(id) on t.id = g.object_id
        where g.pgt_id = d.pgt_id and g.kind = 'source'
            and g.content -> 'triggers' is distinct from pgtrickle_internal.capture_content(g.object_id, g.content -> 'roots'))
$$;

-- note_own_triggers: record that we replaced the triggers of a source ourselves, under a lock and without a gap.
-- If the owner of the source will enable them ALWAYS in this transaction, the rows are written in any case:
-- note_enabled recognizes them by that.
create or replace function pgtrickle_internal.note_own_triggers(source oid, readers bigint[], is_owner boolean) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_ground g set content = g.content || jsonb_build_object('triggers',
        pgtrickle_internal.capture_content(g.object_id, g.content -> 'roots'))
    from pgtrickle_internal.tree_of(source) t(id)
    where g.pgt_id = any (readers) and g.kind = 'source' and g.object_id = t.id
        and (g.content -> 'triggers' is distinct from pgtrickle_internal.capture_content(g.object_id, g.content -> 'roots')
            or is_owner and jsonb_path_exists(g.content, '$.triggers.*[1] ? (@ == "O")'))
$$;

-- note_enabled: record that the owner of a stream table that is not loaded yet has enabled the triggers of its
-- sources ALWAYS. This leaves no gap for that stream table, nor for those whose triggers this transaction replaced
-- before.
create or replace function pgtrickle_internal.note_enabled(relation_id oid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id
        and not s.is_populated);
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    update pgtrickle.pgt_ground g set content = g.content || jsonb_build_object('triggers',
        pgtrickle_internal.capture_content(g.object_id, g.content -> 'roots'))
    where g.kind = 'source' and (g.pgt_id = id or g.xmin = pg_current_xact_id()::xid)
        and g.object_id in (select o.object_id from pgtrickle.pgt_ground o where o.pgt_id = id and o.kind = 'source')
        and g.content -> 'triggers' is distinct from pgtrickle_internal.capture_content(g.object_id, g.content -> 'roots');
end
$$;

-- restore_guard: create the trigger that refuses direct writes if it is missing or disabled. The owner may have
-- written to the stream table in the meantime, so it must be recomputed afterwards.
create or replace function pgtrickle_internal.restore_guard(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pg_trigger t where t.tgrelid = relation_id and t.tgname = 'pgtrickle_guard'
        and t.tgenabled in ('O', 'A')
        and t.tgfoid = 'pgtrickle.refuse_direct_write'::regproc)
    then
        return;
    end if;
    execute format('create or replace trigger pgtrickle_guard before insert or update or delete or truncate '
        'on %s for each statement execute function pgtrickle.refuse_direct_write()', pgtrickle_internal.printed(relation_id));
    perform pgtrickle_internal.guard_always(relation_id);
end
$$;

-- guard_always: let the guard fire under session_replication_role = replica too, if we may act as the owner.
create or replace function pgtrickle_internal.guard_always(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where t.tgrelid = relation_id and t.tgname = 'pgtrickle_guard' and t.tgenabled <> 'A'
            and pg_has_role(c.relowner, 'USAGE'))
    then
        execute format('alter table %s enable always trigger pgtrickle_guard', pgtrickle_internal.printed(relation_id));
    end if;
end
$$;
