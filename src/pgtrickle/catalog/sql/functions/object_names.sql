-- object_names: values such as regclass hold the OID of an object and print its current name, with its schema if
-- the reader's search_path does not lead to it. A stored text would be outdated by a rename and depends on the
-- session. So a query may carry, compare and store such values, but not print or parse them.

-- name_types: the types whose values print as names of objects or roles.
create or replace function pgtrickle_internal.name_types() returns oid[]
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select '{regproc,regprocedure,regoper,regoperator,regclass,regtype,regrole,regnamespace,regconfig,regdictionary,
        regcollation,aclitem}'::regtype[]::oid[]
$$;

-- holds_names: whether a query uses values that print as names: alone, in an array, in a domain or in a row.
-- pg_typeof returns one; the names of built-in types are the same in every session. A constant that names a text
-- search configuration is only passed on, unless it is cast itself.
create or replace function pgtrickle_internal.holds_names(query_view oid, reader oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with reached as materialized (
        select o.objid as id from pgtrickle_internal.reached_objects(query_view, reader) o
        where o.classid = 'pg_type'::regclass
    ),
    named as (
        select found[1]::oid as id from pgtrickle_internal.rules_of(query_view, reader) r
        cross join lateral regexp_replace(regexp_replace(r.action, '\{FUNCEXPR :funcid 1619 :funcresulttype \d+ ',
            case when exists (select from reached) then '\&' else '' end, 'g'),
            '(?<!\{COERCEVIAIO :arg )\{CONST :consttype (?:3734|3769) [^{}]*\}', '', 'g') tree
        cross join lateral regexp_matches(tree, ':\w*type\w* (\d+)', 'gi') found
        union
        select id from reached
    )
    select exists (
        select from named n join pg_type t on t.oid = n.id
        left join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        left join pg_type e on e.oid = any (array[t.typelem, t.typbasetype, a.atttypid])
        where array[t.oid, e.oid, e.typelem, e.typbasetype] && pgtrickle_internal.name_types())
$$;

-- converts_values: the parts of a query that convert values of any type to text, JSON or XML, or text to names of
-- objects. Built-in functions that call the output function of their argument are stable, because that function
-- may be.
create or replace function pgtrickle_internal.converts_values(query_view oid, reader oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from pgtrickle_internal.rules_of(query_view, reader) r
        where r.action ~ '\{(COERCEVIAIO|XMLEXPR|JSONCONSTRUCTOREXPR|JSONEXPR) ')
    or exists (
        select from pgtrickle_internal.functions_of(query_view, reader) f(id) join pg_proc p on p.oid = f.id
        where p.oid < 16384 and p.provolatile = 's' and p.proname <> 'pg_typeof' and (
            p.prorettype = any (pgtrickle_internal.name_types())
            or exists (select from unnest(p.proargtypes::oid[] || p.provariadic) u(id) join pg_type t on t.oid = u.id
                where t.typtype = 'p')))
$$;

-- check_object_names: refuse a query that may print or parse names of objects.
create or replace function pgtrickle_internal.check_object_names(query_view oid, reader oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if pgtrickle_internal.holds_names(query_view, reader) and pgtrickle_internal.converts_values(query_view, reader) then
        raise exception 'the query turns names of database objects (regclass, regtype or the like) into text or back' using
            errcode = 'feature_not_supported',
            hint = 'That text changes when an object is renamed, and with the search_path of the session. Keep the '
                'column as it is, without a cast: it prints as the name whenever somebody reads it.';
    end if;
end
$$;
