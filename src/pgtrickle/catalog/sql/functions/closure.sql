-- closure: every object of the system catalogs that a query relies on, down to functions.
-- PostgreSQL stores an analysed expression as text in which OIDs occur in many kinds of fields, and each version
-- adds some. So these functions do not list the fields that hold OIDs: they look up every number that could be an
-- OID, except in a few fields that never hold one. The result may contain too many objects, never too few.
-- Built-in objects (OID below 16384) are left out.
-- These functions only read catalogs. PostgreSQL does not know what a function in another language than SQL calls.
-- Such a function, and a SQL function whose body is a string, is opaque: it is trusted or refused by its owner
-- alone.

-- tree_objects: every object whose OID occurs in the text of a pg_node_tree.
-- Numbers that are not OIDs are skipped: positions in the query text, type modifiers, lengths of constants. An OID
-- is unique only within its catalog, and after pg_upgrade a function can have the OID of a table. So a field that
-- only holds relations, or only types, is looked up in that catalog alone.
-- Constants of type oid and of the reg* types hold OIDs as bytes; both byte orders are tried.
create or replace function pgtrickle_internal.tree_objects(tree text) returns table (classid oid, objid oid)
language sql stable rows 20 set search_path = pg_catalog, pg_temp
as $$
    with shortened(tree) as (
        select regexp_replace(regexp_replace(regexp_replace($1,
            ':(?:location|stmt_location|stmt_len|list_start|list_end|\w*typmod) -?\d+', '', 'g'),
            ':\w*typmods \(i[-0-9 ]*\)', '', 'g'),
            ':constvalue \d+ \[', '[', 'g')
    ),
    known(field, number) as (
        select found[1], found[2]::bigint from shortened s, regexp_matches(s.tree,
            ':(relid|resorigtbl|(?:var|const|param|agg|win|case|coalesce|minmax|result|funcresult|opresult)type) '
            '(\d{5,10})(?=[ )}])', 'g') found
    ),
    others(tree) as (
        select regexp_replace(s.tree,
            ':(?:relid|resorigtbl|(?:var|const|param|agg|win|case|coalesce|minmax|result|funcresult|opresult)type) '
            '\d{5,10}(?=[ )}])', '', 'g') from shortened s
    ),
    constants(bytes) as (
        select array[found[1], found[2], found[3], found[4], found[5], found[6], found[7], found[8]]::integer[]
        from regexp_matches($1, '\{CONST :consttype (?:24|26|220[2-6]|3734|3769|4089|4096|4191) [^}]*?'
            ':constvalue 4 \[ (-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+) \]', 'g') found
    ),
    numbers(number) as (
        select distinct found[1]::bigint from others s, regexp_matches(s.tree, '[( ](\d{5,10})(?=[ )}])', 'g') found
        union
        select b.lowest + 256 * b.low + 65536 * b.high + 16777216 * b.highest
        from constants c, lateral (values
            (c.bytes[1], c.bytes[2], c.bytes[3], c.bytes[4]::bigint),
            (c.bytes[8], c.bytes[7], c.bytes[6], c.bytes[5]::bigint)) s(b1, b2, b3, b4),
            lateral (select s.b1 & 255, s.b2 & 255, s.b3 & 255, s.b4 & 255) b(lowest, low, high, highest)
    ),
    ids(id) as materialized (
        select number::oid from numbers where number between 16384 and 4294967295
    ),
    type_ids(id) as materialized (
        select id from ids union select k.number::oid from known k where k.field ~ 'type$' and k.number >= 16384
    ),
    class_ids(id) as materialized (
        select id from ids union select k.number::oid from known k where k.field !~ 'type$' and k.number >= 16384
    )
    select 'pg_proc'::regclass::oid, o.oid from ids join pg_proc o on o.oid = ids.id
    union all select 'pg_operator'::regclass, o.oid from ids join pg_operator o on o.oid = ids.id
    union all select 'pg_type'::regclass, o.oid from type_ids t join pg_type o on o.oid = t.id
    union all select 'pg_class'::regclass, o.oid from class_ids t join pg_class o on o.oid = t.id
    union all select 'pg_collation'::regclass, o.oid from ids join pg_collation o on o.oid = ids.id
    union all select 'pg_opclass'::regclass, o.oid from ids join pg_opclass o on o.oid = ids.id
    union all select 'pg_opfamily'::regclass, o.oid from ids join pg_opfamily o on o.oid = ids.id
    union all select 'pg_ts_config'::regclass, o.oid from ids join pg_ts_config o on o.oid = ids.id
    union all select 'pg_ts_dict'::regclass, o.oid from ids join pg_ts_dict o on o.oid = ids.id
$$;

-- trees_of: the stored expressions of one object: rules of a view, virtual columns of a table, checks and defaults
-- of a domain, the body and the defaults of a function.
create or replace function pgtrickle_internal.trees_of(classid oid, objid oid) returns setof text
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
begin
    case classid
    when 'pg_class'::regclass then
        return query select w.ev_action::text from pg_rewrite w join pg_class c on c.oid = w.ev_class
            where w.ev_class = objid and c.relkind = 'v';
        -- 'v' is a virtual column: reading it computes it; a stored one was computed by its writer
        return query select e.adbin::text from pg_attribute a
            join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
            where a.attrelid = objid and a.attgenerated = 'v';
    when 'pg_type'::regclass then
        return query select k.conbin::text from pg_constraint k where k.contypid = objid and k.conbin is not null;
        return query select t.typdefaultbin::text from pg_type t where t.oid = objid and t.typdefaultbin is not null;
    when 'pg_proc'::regclass then
        return query select p.prosqlbody::text from pg_proc p where p.oid = objid and p.prosqlbody is not null;
        return query select p.proargdefaults::text from pg_proc p where p.oid = objid and p.proargdefaults is not null;
    else
        null;
    end case;
end
$$;

-- parts_of: the objects that one object consists of or may call, one level down.
-- A type includes its casts in both directions, used or not: PostgreSQL's JSON functions look them up at run time,
-- and a query that is parsed again finds casts that were created since. An operator includes its commutator and
-- negator, which the planner may use in its place. Functions and operators include all others of the same name and
-- schema: each time the query is parsed PostgreSQL resolves the call again, and a new one may match better.
create or replace function pgtrickle_internal.parts_of(classid oid, objid oid) returns table (part_class oid, part_id oid)
language plpgsql stable rows 5 set search_path = pg_catalog, pg_temp
as $$
declare
    procedures constant oid := 'pg_proc'::regclass;
    types constant oid := 'pg_type'::regclass;
begin
    return query select o.classid, o.objid
        from pgtrickle_internal.trees_of($1, $2) t(tree) cross join lateral pgtrickle_internal.tree_objects(t.tree) o;
    case classid
    when types then
        return query select types, next.id from pg_type t
            cross join lateral (
                values (t.typbasetype), (t.typelem)
                union all select a.atttypid from pg_attribute a
                    where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
                union all select u.id from pg_range g cross join lateral unnest(array[g.rngsubtype, g.rngtypid,
                    g.rngmultitypid]) u(id) where objid in (g.rngtypid, g.rngmultitypid)) next(id)
            where t.oid = objid;
        return query select procedures, next.id from pg_type t
            cross join lateral (
                select unnest(array[t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout,
                    t.typanalyze]::oid[])
                union all select t.typsubscript::oid
                union all select unnest(array[g.rngcanonical, g.rngsubdiff]::oid[]) from pg_range g
                    where g.rngtypid = objid) next(id)
            where t.oid = objid;
        return query select 'pg_class'::regclass::oid, t.typrelid from pg_type t where t.oid = objid;
        return query select 'pg_collation'::regclass::oid, t.typcollation from pg_type t where t.oid = objid;
        return query select 'pg_cast'::regclass::oid, k.oid from pg_cast k where objid in (k.castsource, k.casttarget);
        return query select 'pg_opclass'::regclass::oid, o.oid from pg_opclass o where o.opcintype = objid;
        return query select 'pg_opclass'::regclass::oid, g.rngsubopc from pg_range g where g.rngtypid = objid;
    when procedures then
        return query select types, unnest(array[p.prorettype, p.provariadic] || p.proargtypes::oid[]
            || coalesce(p.proallargtypes, '{}')) from pg_proc p where p.oid = objid;
        return query select procedures, p.prosupport::oid from pg_proc p where p.oid = objid;
        return query select 'pg_language'::regclass::oid, p.prolang from pg_proc p where p.oid = objid;
        return query select procedures, other.oid from pg_proc p
            join pg_proc other on other.proname = p.proname and other.pronamespace = p.pronamespace
            where p.oid = objid and other.oid <> objid;
        return query select procedures, unnest(array[g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn,
            g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::oid[])
            from pg_aggregate g where g.aggfnoid = objid;
        return query select types, unnest(array[g.aggtranstype, g.aggmtranstype])
            from pg_aggregate g where g.aggfnoid = objid;
        return query select 'pg_operator'::regclass::oid, g.aggsortop from pg_aggregate g where g.aggfnoid = objid;
        -- the body of a SQL function may name relations and functions that its tree does not show
        return query select d.refclassid, d.refobjid from pg_depend d
            where d.classid = procedures and d.objid = $2 and d.refclassid in (procedures, types,
                'pg_class'::regclass, 'pg_operator'::regclass, 'pg_collation'::regclass);
    when 'pg_operator'::regclass then
        return query select procedures, unnest(array[o.oprcode, o.oprrest, o.oprjoin]::oid[])
            from pg_operator o where o.oid = objid;
        return query select 'pg_operator'::regclass::oid, unnest(array[o.oprcom, o.oprnegate])
            from pg_operator o where o.oid = objid;
        return query select types, unnest(array[o.oprleft, o.oprright, o.oprresult])
            from pg_operator o where o.oid = objid;
        return query select 'pg_operator'::regclass::oid, other.oid from pg_operator o
            join pg_operator other on other.oprname = o.oprname and other.oprnamespace = o.oprnamespace
            where o.oid = objid and other.oid <> objid;
    when 'pg_cast'::regclass then
        return query select procedures, k.castfunc from pg_cast k where k.oid = objid;
    when 'pg_opclass'::regclass then
        return query select 'pg_opfamily'::regclass::oid, o.opcfamily from pg_opclass o where o.oid = objid;
    when 'pg_opfamily'::regclass then
        return query select procedures, f.amproc::oid from pg_amproc f where f.amprocfamily = objid;
        return query select 'pg_operator'::regclass::oid, f.amopopr from pg_amop f where f.amopfamily = objid;
    when 'pg_language'::regclass then
        return query select procedures, unnest(array[l.lanplcallfoid, l.laninline]) from pg_language l
            where l.oid = objid;
    else
        null;
    end case;
end
$$;

-- closure_of: the given objects and everything they rely on.
create or replace function pgtrickle_internal.closure_of(classids oid[], objids oid[])
returns table (classid oid, objid oid)
language sql stable rows 20 set search_path = pg_catalog, pg_temp
as $$
    with recursive reached(classid, objid) as (
        select u.classid, u.objid from unnest(classids, objids) as u(classid, objid) where u.objid >= 16384
        union
        select p.part_class, p.part_id from reached r
        cross join lateral pgtrickle_internal.parts_of(r.classid, r.objid) p
        where p.part_id >= 16384
    )
    select r.classid, r.objid from reached r
$$;

-- reached_objects: everything that the query of a view relies on: the relations it reads, with the views below it,
-- the functions it calls, and the types it uses. `reader` is the owner of the stream table; the objects are the
-- same for every reader.
create or replace function pgtrickle_internal.reached_objects(query_view oid, reader oid)
returns table (classid oid, objid oid)
language sql stable rows 20 set search_path = pg_catalog, pg_temp
as $$
    with named(classid, objid) as (
        select o.classid, o.objid from pgtrickle_internal.trees_of('pg_class'::regclass, query_view) t(tree)
        cross join lateral pgtrickle_internal.tree_objects(t.tree) o
        union
        select d.refclassid, d.refobjid from pg_rewrite w
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
        where w.ev_class = query_view
        union
        select 'pg_type'::regclass, a.atttypid from pg_attribute a where a.attrelid = query_view and a.attnum > 0
    )
    select c.classid, c.objid
    from (select array_agg(n.classid) as classids, array_agg(n.objid) as objids from named n
        where n.objid <> query_view and n.classid <> 'pg_namespace'::regclass) n
    cross join lateral pgtrickle_internal.closure_of(n.classids, n.objids) c
$$;
