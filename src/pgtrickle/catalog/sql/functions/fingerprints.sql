-- fingerprints: what a stream table relies on in its dependencies, as jsonb that is compared part by part. Plain
-- reads of the catalogs only, so inside a snapshot they describe that snapshot.

-- table_fingerprint: name, used columns, keys, partitions and row security; null if the table does not exist.
create or replace function pgtrickle_internal.table_fingerprint(relation_id oid, numbers smallint[]) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'name', format('%I.%I', n.nspname, c.relname),
        'columns', (
            select coalesce(jsonb_object_agg(a.attnum, jsonb_build_array(
                a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attgenerated,
                case when a.attgenerated <> '' then md5(e.adbin::text) end)), '{}')
            from pg_attribute a
            left join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
            where a.attrelid = c.oid and a.attnum = any (numbers) and not a.attisdropped),
        'keys', (
            select coalesce(jsonb_agg(distinct sorted.names), '[]')
            from pgtrickle_internal.unique_keys(c.oid) k cross join lateral (
                select jsonb_agg(a.attname order by a.attnum) as names from pg_attribute a
                where a.attrelid = c.oid and a.attname = any (k.column_names)) sorted),
        'tree', (
            with recursive tree(id) as (
                select c.oid
                union
                select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id)
            select jsonb_agg(id::bigint order by id) from tree),
        'row_security', c.relrowsecurity)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation_id
$$;

-- view_fingerprint: name and definition of a view.
create or replace function pgtrickle_internal.view_fingerprint(relation_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'name', format('%I.%I', n.nspname, c.relname),
        'definition', md5(regexp_replace(w.ev_action::text, ':(?:location|stmt_location|stmt_len) -?\d+', '', 'g')),
        'owner', c.relowner::bigint,
        'options', c.reloptions)
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_rewrite w on w.ev_class = c.oid and w.rulename = '_RETURN'
    where c.oid = relation_id
$$;

-- function_fingerprint: name, body and privileges of a function.
create or replace function pgtrickle_internal.function_fingerprint(function_id oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'name', format('%I.%I', n.nspname, p.proname),
        'definition', md5(concat_ws('|', p.prosrc, p.probin,
            regexp_replace(p.prosqlbody::text, ':(?:location|stmt_location|stmt_len) -?\d+', '', 'g'),
            p.proisstrict, p.prosecdef, p.proconfig::text, p.prolang, p.prorettype, p.proargdefaults::text,
            (select to_jsonb(g) - 'aggfnoid' from pg_aggregate g where g.aggfnoid = p.oid))),
        'volatility', p.provolatile,
        'owner', p.proowner::bigint)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.oid = function_id
$$;

-- fingerprint: the fingerprint of any dependency, by its type.
create or replace function pgtrickle_internal.fingerprint(source_type text, source_id oid, numbers smallint[])
returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case source_type
        when 'view' then pgtrickle_internal.view_fingerprint(source_id)
        when 'function' then pgtrickle_internal.function_fingerprint(source_id)
        else pgtrickle_internal.table_fingerprint(source_id, numbers) end
$$;
