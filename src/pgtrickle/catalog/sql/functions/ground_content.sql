-- ground_content: the parts of an object that matter to a stream table, as jsonb that is compared part by part.
-- Plain reads of the catalogs only, so inside a snapshot they describe that snapshot.
-- If a gap leaves the same state behind (a trigger disabled and enabled, a partition detached and attached), the
-- xmin of the catalog row is part of the content: nothing else writes these rows.

-- capture_content: the triggers of a relation that capture its rows for one of these sources, by name. A partition
-- can be a source of other stream tables: their triggers come and go without leaving a gap here.
create or replace function pgtrickle_internal.capture_content(relation_id oid, roots jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_object_agg(t.tgname, jsonb_build_array(t.xmin::text, t.tgenabled, t.tgtype)), '{}')
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid and p.pronamespace = to_regnamespace('pgtrickle_changes')
    where t.tgrelid = relation_id
        and p.proname in (select format('capture_%s', root) from jsonb_array_elements_text(roots) root)
$$;

-- trigger_content: the triggers of a relation that call functions of the given schema, by name.
create or replace function pgtrickle_internal.trigger_content(relation_id oid, function_schema name) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_object_agg(t.tgname, jsonb_build_array(t.xmin::text, t.tgenabled, t.tgtype)), '{}')
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace
    where t.tgrelid = relation_id and n.nspname = function_schema
$$;

-- edge_content: the parents and the children of a relation.
create or replace function pgtrickle_internal.edge_content(relation_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'parents', (select coalesce(jsonb_object_agg(inhparent, xmin::text), '{}') from pg_inherits
            where inhrelid = relation_id),
        'children', (select coalesce(jsonb_object_agg(inhrelid, xmin::text), '{}') from pg_inherits
            where inhparent = relation_id))
$$;

-- stored_content: shows whether the rows of a relation were rewritten with other values. ALTER COLUMN TYPE writes
-- both a new file and the catalog row of the column. VACUUM FULL, CLUSTER and TRUNCATE only write a new file; the
-- first two also write the row of a column whose default was not stored in every row yet, once.
create or replace function pgtrickle_internal.stored_content(relation_id oid, names name[]) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'file', (select c.relfilenode::bigint from pg_class c where c.oid = relation_id),
        'columns', (select coalesce(jsonb_object_agg(a.attname, a.xmin::text), '{}') from pg_attribute a
            where a.attrelid = relation_id and a.attname = any (names) and a.attnum > 0 and not a.attisdropped))
$$;

-- own_content: the content of the stream table itself.
create or replace function pgtrickle_internal.own_content(relation_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
            'owner', c.relowner::bigint, 'kind', c.relkind, 'persistence', c.relpersistence,
            'shape', (select coalesce(jsonb_object_agg(a.attnum, jsonb_build_array(a.attname,
                    a.atttypid::bigint, a.atttypmod, a.attcollation::bigint)), '{}')
                from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
            'rules', (select coalesce(jsonb_agg(w.rulename order by w.rulename), '[]') from pg_rewrite w
                where w.ev_class = c.oid),
            'guard', pgtrickle_internal.trigger_content(c.oid, 'pgtrickle') -> 'pgtrickle_guard')
        || pgtrickle_internal.edge_content(c.oid)
        || pgtrickle_internal.stored_content(c.oid, array(select a.attname from pg_attribute a
            where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
    from pg_class c where c.oid = relation_id
$$;

-- source_content: the content of one of the sources `roots`, or of a partition or child of them. Only the columns
-- with these names count.
create or replace function pgtrickle_internal.source_content(relation_id oid, names name[], roots jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
            'kind', c.relkind, 'persistence', c.relpersistence,
            'is_subscribed', pgtrickle_internal.subscriptions_version(c.oid) is not null,
            'roots', roots, 'triggers', pgtrickle_internal.capture_content(c.oid, roots))
        || pgtrickle_internal.edge_content(c.oid) || pgtrickle_internal.stored_content(c.oid, names)
    from pg_class c where c.oid = relation_id
$$;

-- view_content: the names of the columns of a view. What they are computed from, and with whose privileges, is
-- compared as a dependency.
create or replace function pgtrickle_internal.view_content(relation_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object('columns', (
        select jsonb_object_agg(a.attnum, a.attname) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0))
    from pg_class c where c.oid = relation_id
$$;

-- type_content: everything that determines the values of a type and how they are checked. Its name is part of what
-- was compiled for the query. An attribute that was dropped and added again has another number, and no values.
-- Defaults, and whether a constraint was validated, are left out: they change no existing value.
create or replace function pgtrickle_internal.type_content(type_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'name', format_type(t.oid, null),
        'base', jsonb_build_array(t.typtype, t.typbasetype::bigint, t.typtypmod, t.typnotnull,
            t.typcollation::bigint, t.typelem::bigint, t.typinput::oid::bigint, t.typoutput::oid::bigint,
            t.typsend::oid::bigint, t.typreceive::oid::bigint),
        'labels', (select coalesce(jsonb_agg(e.enumlabel order by e.enumsortorder), '[]') from pg_enum e
            where e.enumtypid = t.oid),
        'attributes', (select coalesce(jsonb_agg(jsonb_build_array(a.attnum, a.attname, a.atttypid::bigint,
                a.atttypmod, a.attcollation::bigint) order by a.attnum), '[]')
            from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped),
        'constraints', (select coalesce(jsonb_agg(jsonb_build_array(k.conname, k.contype,
                regexp_replace(k.conbin::text, ':location -?\d+', '', 'g')) order by k.conname), '[]')
            from pg_constraint k where k.contypid = t.oid),
        'range', (select jsonb_build_array(g.rngsubtype::bigint, g.rngcollation::bigint, g.rngsubopc::bigint,
                g.rngcanonical::oid::bigint)
            from pg_range g where g.rngtypid = t.oid))
    from pg_type t where t.oid = type_id
$$;

-- family_content: the operators and functions of an operator family.
create or replace function pgtrickle_internal.family_content(family_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'operators', (select coalesce(jsonb_agg(jsonb_build_array(o.amoplefttype::bigint, o.amoprighttype::bigint,
                o.amopstrategy, o.amopopr::bigint) order by o.amoplefttype, o.amoprighttype, o.amopstrategy), '[]')
            from pg_amop o where o.amopfamily = f.oid),
        'functions', (select coalesce(jsonb_agg(jsonb_build_array(p.amproclefttype::bigint,
                p.amprocrighttype::bigint, p.amprocnum, p.amproc::oid::bigint)
                order by p.amproclefttype, p.amprocrighttype, p.amprocnum), '[]')
            from pg_amproc p where p.amprocfamily = f.oid))
    from pg_opfamily f where f.oid = family_id
$$;

-- collation_content: how a collation compares, and the recorded and current versions of its library. Columns that
-- only some versions of PostgreSQL have are found by name.
create or replace function pgtrickle_internal.collation_content(collation_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select (to_jsonb(c) - '{oid,collowner}'::text[])
        || jsonb_build_object('actual', pg_collation_actual_version(c.oid))
    from pg_collation c where c.oid = collation_id
$$;

-- conversions_content: casts, operators and operator classes that a query could use when it is parsed again: those
-- of its types, and operators of the names it uses.
create or replace function pgtrickle_internal.conversions_content(types jsonb, operators jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object('types', types, 'operators', operators,
        'casts', (select coalesce(jsonb_agg(jsonb_build_array(k.castsource::regtype::text,
                k.casttarget::regtype::text, k.castfunc::bigint, k.castcontext, k.castmethod)
                order by k.castsource, k.casttarget), '[]')
            from pg_cast k where k.oid >= 16384
                and (types @> to_jsonb(k.castsource::bigint) or types @> to_jsonb(k.casttarget::bigint))),
        'found', (select coalesce(jsonb_agg(jsonb_build_array(o.oid::bigint, o.oprname, o.oprnamespace::bigint,
                o.oprleft::bigint, o.oprright::bigint, o.oprcode::oid::bigint, o.oprcom::bigint,
                o.oprnegate::bigint, o.oprcanmerge, o.oprcanhash) order by o.oid), '[]')
            from pg_operator o where o.oid >= 16384 and operators ? o.oprname),
        'classes', (select coalesce(jsonb_agg(jsonb_build_array(c.oid::bigint, c.opcmethod::bigint,
                c.opcfamily::bigint, c.opcintype::bigint, c.opcdefault) order by c.oid), '[]')
            from pg_opclass c where c.oid >= 16384 and types @> to_jsonb(c.opcintype::bigint)))
$$;

-- names_content: the functions that are not built in and have one of these names.
create or replace function pgtrickle_internal.names_content(names text) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(p.oid::regprocedure::text order by p.oid), '[]')
    from unnest(string_to_array(names, chr(10))) n(name) join pg_proc p on p.proname = n.name::name
    where p.oid >= 16384
$$;

-- text_search_content: how text is parsed: configurations with the dictionaries of each token type, and the
-- dictionaries with their options.
create or replace function pgtrickle_internal.text_search_content() returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'configurations', (select md5(coalesce(string_agg(format('%s %s %s', c.oid, c.cfgparser, (
                select string_agg(format('%s %s %s', m.maptokentype, m.mapseqno, m.mapdict), ','
                    order by m.maptokentype, m.mapseqno)
                from pg_ts_config_map m where m.mapcfg = c.oid)), ';' order by c.oid), '')) from pg_ts_config c),
        'dictionaries', (select md5(coalesce(string_agg(format('%s %s %s', d.oid, d.dicttemplate, d.dictinitoption), ';'
                order by d.oid), '')) from pg_ts_dict d))
$$;

-- content_of: the current content of an object, with the parts that `stored` has; null if it does not exist.
create or replace function pgtrickle_internal.content_of(kind text, object_id oid, detail text, stored jsonb) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return case kind
        when 'itself' then pgtrickle_internal.own_content(object_id)
        when 'source' then pgtrickle_internal.source_content(object_id,
            array(select jsonb_object_keys(stored -> 'columns')::name), stored -> 'roots')
        when 'view' then pgtrickle_internal.view_content(object_id)
        when 'function' then pgtrickle_internal.function_fingerprint(object_id)
        when 'type' then pgtrickle_internal.type_content(object_id)
        when 'family' then pgtrickle_internal.family_content(object_id)
        when 'collation' then pgtrickle_internal.collation_content(object_id)
        when 'schema' then (select jsonb_build_object('name', n.nspname) from pg_namespace n where n.oid = object_id)
        when 'names' then pgtrickle_internal.names_content(detail)
        when 'conversions' then pgtrickle_internal.conversions_content(stored -> 'types', stored -> 'operators')
        when 'text_search' then pgtrickle_internal.text_search_content()
        -- roles are compared by the privileges that they grant
        else stored
        end;
end
$$;

-- changed_ground: the objects whose content differs from the recorded one, with both contents.
create or replace function pgtrickle_internal.changed_ground(id bigint)
returns table (kind text, object_id oid, name text, stored jsonb, present jsonb)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select g.kind, g.object_id, g.name, g.content, p.content
    from pgtrickle.pgt_ground g
    cross join lateral (select pgtrickle_internal.content_of(g.kind, g.object_id, g.detail, g.content)) p(content)
    where g.pgt_id = id and g.content is distinct from p.content
    order by g.kind, g.object_id
$$;

-- note_ground: record the current versions after a comparison that found no relevant change, so that it is not
-- repeated. What was compiled may rely on more of a source than its content: which columns are never null, and its
-- indexes. So every process compiles the query again if the row of a source has changed.
create or replace function pgtrickle_internal.note_ground(id bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    with noted as (
        update pgtrickle.pgt_ground g set
            version = pgtrickle_internal.version_of(g.kind, g.object_id, g.detail),
            content = coalesce(pgtrickle_internal.content_of(g.kind, g.object_id, g.detail, g.content), g.content)
        where g.pgt_id = id and g.version is distinct from pgtrickle_internal.version_of(g.kind, g.object_id, g.detail)
        returning g.kind
    )
    update pgtrickle.pgt_stream_tables s set ground_generation = s.ground_generation + 1
    where s.pgt_id = id and exists (select from noted n where n.kind = 'source')
$$;

-- note_versions: record the current versions after a comparison that stops the stream table; the next change
-- triggers another comparison.
create or replace function pgtrickle_internal.note_versions(id bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_ground g set version = pgtrickle_internal.version_of(g.kind, g.object_id, g.detail)
    where g.pgt_id = id
$$;
