-- search_path: a refresh evaluates with search_path = pg_catalog, pg_temp, as PostgreSQL itself does for materialized
-- views since version 17. A function that relies on its caller's search_path would fail then, or silently find
-- another operator, so it is refused: when a stream table is created, and when such a function replaces another.

-- found_by_path: names in the bodies of functions that a query calls, directly or not, and that only a search_path
-- leads to. The bodies are text to PostgreSQL, so this goes by their words: functions before a parenthesis, types,
-- and operators that can apply; words in comments and strings do not count. A body that is parsed when the
-- function is created (BEGIN ATOMIC) holds no names.
-- The ground has more functions, such as those of casts that nothing uses: they never run, so they do not count.
create or replace function pgtrickle_internal.found_by_path(id bigint, path name[])
returns table (function_id oid, name text, schema_name name)
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    with recursive called(id) as (
        select d.source_relid from pgtrickle.pgt_dependencies d
        where d.pgt_id = found_by_path.id and d.source_type = 'function'
        union
        select n.id from called c cross join lateral (
            select m.objid as id from pgtrickle_internal.mentioned_objects(c.id) m
            where m.classid = 'pg_proc'::regclass
            union
            select p.part_id from pgtrickle_internal.parts_of('pg_proc'::regclass, c.id) p
            where p.part_class = 'pg_proc'::regclass and p.part_id >= 16384) n
    ),
    schemas as (
        select n.oid, n.nspname from pg_namespace n
        where n.nspname = any (path) and n.nspname <> 'pg_catalog' and n.nspname !~ '^pg_temp_'
    ),
    functions as (
        select p.oid, p.prorettype || p.proargtypes::oid[] as types,
            regexp_replace(regexp_replace(regexp_replace(p.prosrc, '--[^\n]*', ' ', 'g'), '/\*.*?\*/', ' ', 'g'),
                '''(?:[^'']|'''')*''', ''' ''', 'g') as body
        from called c
        join pg_proc p on p.oid = c.id and p.prosqlbody is null
            and not exists (select from unnest(p.proconfig) c where c ~ '^search_path=')
            and not exists (select from pg_depend d
                where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
        join pg_language l on l.oid = p.prolang and l.lanname not in ('c', 'internal')
    ),
    words as (
        select f.oid, f.types, coalesce(w[1], lower(w[2])) as word, w[3] is not null as is_called
        from functions f, regexp_matches(f.body,
            '(?<![[:alnum:]_$."])(?:"([^"]+)"|([[:alpha:]_][[:alnum:]_$]*))(\s*\()?', 'g') w
    ),
    types as (
        select w.oid, t.oid as type_id, t.typname, s.nspname
        from words w join pg_type t on t.typname = w.word::name join schemas s on s.oid = t.typnamespace
        left join pg_class c on c.oid = t.typrelid
        where t.typtype <> 'c' or c.relkind = 'c'
    )
    select w.oid, w.word || '()', s.nspname
    from words w join pg_proc p on p.proname = w.word::name and p.oid <> w.oid join schemas s on s.oid = p.pronamespace
    where w.is_called
    union all
    select t.oid, t.typname, t.nspname from types t
    union all
    select f.oid, o.oprname, s.nspname
    from functions f cross join lateral regexp_matches(f.body,
        '(?<![.+*/<>=~!@#%^&|`?-])[-+*/<>=~!@#%^&|`?]+', 'g') found
    join pg_operator o on o.oprname = found[1]::name join schemas s on s.oid = o.oprnamespace
    where greatest(o.oprleft, o.oprright) < 16384
        or array[o.oprleft, o.oprright] && (f.types || array(select t.type_id from types t where t.oid = f.oid))
$$;

-- check_search_path: refuse a stream table with a function that relies on the search_path of its author.
create or replace function pgtrickle_internal.check_search_path(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    path name[] := (select s.author_path from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    found record;
begin
    select f.function_id::regprocedure::text as function, f.name, f.schema_name into found
    from pgtrickle_internal.found_by_path(id, path) f order by f.function_id, f.name limit 1;
    if found.function is not null then
        raise exception '%', format('function %s uses %s of schema %I without naming the schema', found.function,
                found.name, found.schema_name) using
            errcode = 'feature_not_supported',
            hint = format('A refresh looks up such names in pg_catalog only. Set the search_path of the function: '
                'alter function %s set search_path = %s', found.function,
                (select string_agg(quote_ident(p.name), ', ' order by p.position)
                    from unnest(path) with ordinality as p(name, position) where p.name <> 'pg_catalog'));
    end if;
end
$$;
