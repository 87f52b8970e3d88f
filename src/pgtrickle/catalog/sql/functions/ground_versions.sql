-- ground_versions: cheap hints whether the catalog rows of an object were written since they were recorded.
-- A version is a hash of (xmin, ctid) of every row that belongs to the object. No later row can have the same
-- pair: a row that the same transaction writes again has another ctid. VACUUM FULL, GRANT and the like change
-- versions too, so a different version only means that the content must be compared.
-- Each function returns one row, or none if the object does not exist. They set no search_path, so that PostgreSQL
-- can inline them; their callers set it.

-- own_version: the version of the stream table itself. pg_class marks its first child and its first rule, and
-- pg_attribute counts its parents, so three catalogs are enough in nearly all cases.
create or replace function pgtrickle_internal.own_version(relation_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(c.xmin, c.ctid), 1)
        # coalesce((select bit_xor(hash_record_extended(row(a.xmin, a.ctid), 2)) from pg_attribute a
            where a.attrelid = c.oid and a.attnum > 0), 0)
        # coalesce((select bit_xor(hash_record_extended(row(t.xmin, t.ctid), 3)) from pg_trigger t
            where t.tgrelid = c.oid), 0)
        # case when c.relhassubclass then coalesce((
            select bit_xor(hash_record_extended(row(h.xmin, h.ctid), 6)) from pg_inherits h
            where h.inhparent = c.oid), 0) else 0 end
        # case when c.relhasrules then coalesce((
            select bit_xor(hash_record_extended(row(w.xmin, w.ctid), 7)) from pg_rewrite w
            where w.ev_class = c.oid), 0) else 0 end
    from pg_class c where c.oid = relation_id
$$;

-- subscriptions_version: the version of the subscriptions that write to a relation; null if there is none, or we
-- may not read them. Not SQL: PostgreSQL checks the privileges of a whole statement, whether a part of it is
-- executed or not.
create or replace function pgtrickle_internal.subscriptions_version(relation_id oid) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if has_table_privilege('pg_catalog.pg_subscription_rel', 'SELECT') then
        return (select bit_xor(hash_record_extended(row(r.srsubid, r.srrelid), 7)) from pg_subscription_rel r
            where r.srrelid = relation_id);
    end if;
    return null;
end
$$;

-- source_ground_version: the version of a source, or of a partition or child of one: also its keys, its parents
-- and children, and whether a subscription writes to it.
create or replace function pgtrickle_internal.source_ground_version(relation_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(c.xmin, c.ctid), 1)
        # coalesce((select bit_xor(hash_record_extended(row(a.xmin, a.ctid), 2)) from pg_attribute a
            where a.attrelid = c.oid and a.attnum > 0), 0)
        # coalesce((select bit_xor(hash_record_extended(row(t.xmin, t.ctid), 3)) from pg_trigger t
            where t.tgrelid = c.oid), 0)
        # coalesce((select bit_xor(hash_record_extended(row(i.xmin, i.ctid), 4)) from pg_index i
            where i.indrelid = c.oid), 0)
        # coalesce((select bit_xor(hash_record_extended(row(h.xmin, h.ctid), 5)) from pg_inherits h
            where h.inhrelid = c.oid), 0)
        # coalesce((select bit_xor(hash_record_extended(row(h.xmin, h.ctid), 6)) from pg_inherits h
            where h.inhparent = c.oid), 0)
        # coalesce(pgtrickle_internal.subscriptions_version(c.oid), 0)
    from pg_class c where c.oid = relation_id
$$;

-- edges_version: the version of the inheritance from a relation to its children alone. PostgreSQL plans with the
-- newest children whatever the snapshot of the query.
create or replace function pgtrickle_internal.edges_version(relation_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select bit_xor(hash_record_extended(row(h.xmin, h.ctid), 6)) from pg_inherits h where h.inhparent = relation_id
$$;

-- view_version: also its columns, whose names are not in its rule.
create or replace function pgtrickle_internal.view_version(relation_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(c.xmin, c.ctid), 1)
        # coalesce((select bit_xor(hash_record_extended(row(w.xmin, w.ctid), 2)) from pg_rewrite w
            where w.ev_class = c.oid), 0)
        # coalesce((select bit_xor(hash_record_extended(row(a.xmin, a.ctid), 3)) from pg_attribute a
            where a.attrelid = c.oid and a.attnum > 0), 0)
    from pg_class c where c.oid = relation_id
$$;

create or replace function pgtrickle_internal.function_version(function_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(p.xmin, p.ctid), 1)
        # coalesce((select hash_record_extended(row(g.xmin, g.ctid), 2) from pg_aggregate g
            where g.aggfnoid = p.oid), 0)
    from pg_proc p where p.oid = function_id
$$;

-- type_version: labels of an enum, attributes of a composite type, constraints of a domain, parts of a range.
create or replace function pgtrickle_internal.type_version(type_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(t.xmin, t.ctid), 1)
        # coalesce((select bit_xor(hash_record_extended(row(e.xmin, e.ctid), 2)) from pg_enum e
            where e.enumtypid = t.oid), 0)
        # coalesce((select bit_xor(hash_record_extended(row(a.xmin, a.ctid), 3)) from pg_attribute a
            where a.attrelid = t.typrelid and a.attnum > 0), 0)
        # coalesce((select bit_xor(hash_record_extended(row(k.xmin, k.ctid), 4)) from pg_constraint k
            where k.contypid = t.oid), 0)
        # coalesce((select hash_record_extended(row(g.xmin, g.ctid), 5) from pg_range g
            where g.rngtypid = t.oid), 0)
    from pg_type t where t.oid = type_id
$$;

-- family_version: how values of a type are compared: an operator family with its operators and functions.
create or replace function pgtrickle_internal.family_version(family_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(f.xmin, f.ctid), 1)
        # coalesce((select bit_xor(hash_record_extended(row(o.xmin, o.ctid), 2)) from pg_amop o
            where o.amopfamily = f.oid), 0)
        # coalesce((select bit_xor(hash_record_extended(row(p.xmin, p.ctid), 3)) from pg_amproc p
            where p.amprocfamily = f.oid), 0)
    from pg_opfamily f where f.oid = family_id
$$;

-- collation_version: also the current version of the operating system's library.
create or replace function pgtrickle_internal.collation_version(collation_id oid) returns table (version bigint)
language sql stable rows 1
as $$
    select hash_record_extended(row(c.xmin, c.ctid), 1)
        # hashtextextended(coalesce(pg_collation_actual_version(c.oid), ''), 2)
    from pg_collation c where c.oid = collation_id
$$;

create or replace function pgtrickle_internal.schema_version(schema_id oid) returns table (version bigint)
language sql stable rows 1
as $$ select hash_record_extended(row(n.xmin, n.ctid), 1) from pg_namespace n where n.oid = schema_id $$;

-- names_version: the version of all functions that are not built in and have one of these names, one name per
-- line. A function that is created, or moved from another schema, may match a call better than the current one.
create or replace function pgtrickle_internal.names_version(names text) returns table (version bigint)
language sql stable rows 1
as $$
    select coalesce(bit_xor(hash_record_extended(row(p.oid, p.pronamespace, p.proargtypes::text), 1)), 0)
    from unnest(string_to_array(names, chr(10))) n(name) join pg_proc p on p.proname = n.name::name
    where p.oid >= 16384
$$;

-- conversions_version: the version of all casts, operators and operator classes that are not built in.
create or replace function pgtrickle_internal.conversions_version() returns table (version bigint)
language sql stable rows 1
as $$
    select coalesce((select bit_xor(hash_record_extended(row(k.xmin, k.ctid), 1)) from pg_cast k
            where k.oid >= 16384), 0)
        # coalesce((select bit_xor(hash_record_extended(row(o.xmin, o.ctid), 2)) from pg_operator o
            where o.oid >= 16384), 0)
        # coalesce((select bit_xor(hash_record_extended(row(c.xmin, c.ctid), 3)) from pg_opclass c
            where c.oid >= 16384), 0)
$$;

-- roles_version: the version of memberships and of the role attributes that grant privileges. Not every role may
-- read pg_authid.
create or replace function pgtrickle_internal.roles_version() returns table (version bigint)
language sql stable rows 1
as $$
    select coalesce((select bit_xor(hash_record_extended(row(m.xmin, m.ctid), 1)) from pg_auth_members m), 0)
        # coalesce((select bit_xor(hash_record_extended(row(r.oid, r.rolsuper, r.rolinherit, r.rolbypassrls), 2))
            from pg_roles r), 0)
$$;

-- text_search_version: the version of all configurations and dictionaries, also of built-in ones, which a
-- superuser may alter.
create or replace function pgtrickle_internal.text_search_version() returns table (version bigint)
language sql stable rows 1
as $$
    select coalesce((select bit_xor(hash_record_extended(row(c.xmin, c.ctid), 1)) from pg_ts_config c), 0)
        # coalesce((select bit_xor(hash_record_extended(row(m.xmin, m.ctid), 2)) from pg_ts_config_map m), 0)
        # coalesce((select bit_xor(hash_record_extended(row(d.xmin, d.ctid), 3)) from pg_ts_dict d), 0)
$$;

-- bindings_version: which relations have the names by which a refused query reads its sources. A relation that is
-- created or renamed may make the query valid again.
create or replace function pgtrickle_internal.bindings_version(id bigint) returns table (version bigint)
language sql stable rows 1
as $$
    select coalesce(bit_xor(hash_record_extended(row(d.source_schema, d.source_name, c.oid), 1)), 0)
    from pgtrickle.pgt_dependencies d
    left join (pg_class c join pg_namespace n on n.oid = c.relnamespace)
        on n.nspname = d.source_schema::name and c.relname = d.source_name::name
    where d.pgt_id = id and d.source_type <> 'function'
$$;

-- version_of: the current version of an object; null if it does not exist, or if other objects cover it.
create or replace function pgtrickle_internal.version_of(kind text, object_id oid, detail text) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return case kind
        when 'itself' then (select v.version from pgtrickle_internal.own_version(object_id) v)
        when 'source' then (select v.version from pgtrickle_internal.source_ground_version(object_id) v)
        when 'view' then (select v.version from pgtrickle_internal.view_version(object_id) v)
        when 'function' then (select v.version from pgtrickle_internal.function_version(object_id) v)
        when 'type' then (select v.version from pgtrickle_internal.type_version(object_id) v)
        when 'family' then (select v.version from pgtrickle_internal.family_version(object_id) v)
        when 'collation' then (select v.version from pgtrickle_internal.collation_version(object_id) v)
        when 'schema' then (select v.version from pgtrickle_internal.schema_version(object_id) v)
        when 'names' then (select v.version from pgtrickle_internal.names_version(detail) v)
        when 'conversions' then (select v.version from pgtrickle_internal.conversions_version() v)
        when 'text_search' then (select v.version from pgtrickle_internal.text_search_version() v)
        when 'bindings' then (select v.version from pgtrickle_internal.bindings_version(detail::bigint) v)
        when 'roles' then (select v.version from pgtrickle_internal.roles_version() v)
        end;
end
$$;
