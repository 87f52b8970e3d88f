-- analyse: what a query reads, and whether it can be a stream table.
-- The query is given as a (temporary) view, so PostgreSQL has already parsed and resolved it. These functions run
-- as the sidecar's role. They read from the stored form of the rule what PostgreSQL does not record in pg_depend:
-- its own catalogs and functions, whole rows, volatility.
-- Each function declares a small number of rows. With the default of 1000, PostgreSQL would scan a whole system
-- catalog to join them, and each new stream table would cost more than the one before.

-- is_invoker: whether a view with these options checks the privileges of its reader (security_invoker).
create or replace function pgtrickle_internal.is_invoker(options text[]) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pg_options_to_table(options) o
        where o.option_name = 'security_invoker' and o.option_value::boolean)
$$;

-- rules_of: the rule of the view and of every view below it, with the role that PostgreSQL checks there.
create or replace function pgtrickle_internal.rules_of(query_view oid, reader oid)
returns table (view_id oid, rule_id oid, checked_as oid, action text)
language sql stable rows 2 set search_path = pg_catalog, pg_temp
as $$
    with recursive reached(view_id, checked_as) as (
        select query_view, reader
        union
        select c.oid, case when pgtrickle_internal.is_invoker(c.reloptions)
            then r.checked_as else c.relowner end
        from reached r
        join pg_rewrite w on w.ev_class = r.view_id
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        join pg_class c on c.oid = d.refobjid and c.relkind = 'v'
    )
    select r.view_id, w.oid, r.checked_as, w.ev_action::text
    from reached r join pg_rewrite w on w.ev_class = r.view_id and w.rulename = '_RETURN'
$$;

-- relations_of: every relation the query reads, directly or through views, with the columns it uses.
create or replace function pgtrickle_internal.relations_of(query_view oid, reader oid)
returns table (relation_id oid, checked_as oid, columns smallint[])
language sql stable rows 5 set search_path = pg_catalog, pg_temp
as $$
    with rules as (select * from pgtrickle_internal.rules_of(query_view, reader)),
    named as (
        select r.checked_as, d.refobjid as relation_id, d.refobjsubid::smallint as number
        from rules r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        union
        select r.checked_as, found[1]::oid, 0::smallint
        from rules r, regexp_matches(r.action, ':relid (\d+)', 'g') found
        where found[1]::oid not in (0, r.view_id)
        union
        -- a whole row counts as all of its columns; the rule does not say of which relation
        select r.checked_as, d.refobjid, a.attnum
        from rules r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        join pg_attribute a on a.attrelid = d.refobjid and a.attnum > 0 and not a.attisdropped
        where r.action ~ '\{VAR :varno \d+ :varattno 0 '
    )
    select n.relation_id, n.checked_as,
        coalesce(array_agg(n.number order by n.number) filter (where n.number <> 0), '{}')
    -- an attribute of a composite type is a column of a relation that has no rows
    from named n join pg_class c on c.oid = n.relation_id and c.relkind <> 'c'
    group by n.relation_id, n.checked_as
$$;

-- functions_of: every function that the query itself calls: by name, as an operator, cast or aggregate, or in a
-- domain constraint. The closure omits built-in functions, so the fields that hold functions are searched for
-- them.
create or replace function pgtrickle_internal.functions_of(query_view oid, reader oid) returns setof oid
language sql stable rows 20 set search_path = pg_catalog, pg_temp
as $$
    with trees(tree) as materialized (
        select r.action from pgtrickle_internal.rules_of(query_view, reader) r
        union all
        select t.tree from pgtrickle_internal.reached_objects(query_view, reader) o
        cross join lateral pgtrickle_internal.trees_of(o.classid, o.objid) t(tree)
        where o.classid = 'pg_type'::regclass
            or (o.classid = 'pg_class'::regclass and not exists (select from pg_rewrite w where w.ev_class = o.objid))
    ),
    named(classid, objid) as materialized (
        select o.classid, o.objid from trees cross join lateral pgtrickle_internal.tree_objects(trees.tree) o
    ),
    called(id) as (
        select found[1]::oid from trees,
            regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid|hashfuncid|negfuncid) ([0-9]+)', 'g') found
        union
        select o.oprcode::oid from trees, regexp_matches(tree, ':(?:opno|eqop|sortop) ([0-9]+)', 'g') found
            join pg_operator o on o.oid = found[1]::oid
        union
        select o.oprcode::oid from trees, regexp_matches(tree, ':opnos [(]o ([ 0-9]+)[)]', 'g') found,
            regexp_split_to_table(btrim(found[1]), ' +') listed
            join pg_operator o on o.oid = listed::oid
        union
        select n.objid from named n where n.classid = 'pg_proc'::regclass
        union
        select o.oprcode::oid from named n join pg_operator o on o.oid = n.objid
        where n.classid = 'pg_operator'::regclass
    )
    select id from called where id <> 0
    union
    select part from called join pg_aggregate g on g.aggfnoid = called.id
        cross join lateral unnest(array[g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn,
            g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::oid[]) part
    where part <> 0
$$;

-- is_known_stable: whether a stable function is built in and its result depends on nothing but its arguments, the
-- settings that a stream table records, the clock, types and text search. These are listed: any other stable function
-- may read catalogs, roles, transactions or the session, and so may those of a later version of PostgreSQL.
-- object_names.sql decides about names of objects, such as regclass.
create or replace function pgtrickle_internal.is_known_stable(function_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select p.oid < 16384 and not 'xid'::regtype = any (p.proargtypes::oid[]) and (p.proname = any (
        '{age, aclexplode, anytextcat, array_to_json, array_to_string, concat, concat_ws, convert, convert_from,
        convert_to, date, date_add, date_part, date_subtract, date_trunc, enum_first, enum_last, enum_range, extract,
        format, generate_series, get_current_ts_config, getdatabaseencoding, in_range, interval_pl_timestamptz,
        length, make_timestamptz, money, now, numeric, overlaps, pg_typeof, phraseto_tsquery, plainto_tsquery,
        quote_literal, quote_nullable, row_to_json, statement_timestamp, textanycat, time, timestamp, timestamptz,
        timestamptz_mi_interval, timestamptz_pl_interval, timetz, timezone, to_char, to_date, to_json, to_jsonb,
        to_number, to_timestamp, to_tsquery, to_tsvector, transaction_timestamp, ts_headline, ts_match_tq,
        ts_match_tt, websearch_to_tsquery, xml, xml_is_well_formed}')
        or p.proname ~ '^(date|timestamp|timestamptz)_(cmp|eq|ge|gt|le|lt|ne)_(date|timestamp|timestamptz)$'
        or p.proname ~ '^(jsonb?_|reg)'
        or p.proname ~ ('^(array|bpchar|cash|cstring|date|domain|enum|interval|multirange|name|range|record|text|time|'
            'timestamp|timestamptz|timetz|varchar|xml|any\w+)_?(in|out|recv|send)$'))
    from pg_proc p where p.oid = function_id
$$;

-- check_functions: refuse functions that can return different results for the same rows, or that the sidecar may
-- not execute.
create or replace function pgtrickle_internal.check_functions(query_view oid, reader oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    called record;
begin
    for called in
        select p.oid, p.oid::regprocedure::text as printed, p.proname, p.provolatile
        from pgtrickle_internal.functions_of(query_view, reader) f(id) join pg_proc p on p.oid = f.id
        order by p.provolatile desc, p.oid
    loop
        if called.provolatile = 'v' then
            raise exception '%', format('the query calls the volatile function %s', called.printed) using
                errcode = 'feature_not_supported',
                hint = case when called.oid >= 16384
                    then format('PostgreSQL treats a function as volatile unless it is declared otherwise. If it always '
                        'returns the same for the same arguments, declare it so: alter function %s immutable', called.printed)
                    else 'It can return something else on every call, so no stored result would be correct. Remove it.' end;
        elsif called.provolatile = 's' and not pgtrickle_internal.is_known_stable(called.oid)
        then
            raise exception '%', format('the query calls %s, whose result may depend on more than its arguments',
                    called.printed) using
                errcode = 'feature_not_supported',
                hint = 'pgtrickle sees changes only of tables that the query itself names.'
                    || case when called.oid >= 16384 then format(' If the function reads tables, write its query in place of '
                        'the call. If it reads nothing but its arguments, declare it so: alter function %s immutable',
                        called.printed) else '' end;
        end if;
    end loop;
    perform pgtrickle_internal.check_trust(query_view, reader);
    for called in
        select p.oid, p.oid::regprocedure::text as printed
        from pgtrickle_internal.functions_of(query_view, reader) f(id) join pg_proc p on p.oid = f.id
        order by p.oid
    loop
        if not has_function_privilege(reader, called.oid, 'EXECUTE') then
            raise exception '%', format('permission denied for function %s', called.printed) using
                errcode = 'insufficient_privilege',
                hint = format('grant execute on function %s to %I', called.printed, pg_get_userbyid(reader));
        elsif not has_function_privilege(pgtrickle.sidecar_role(), called.oid, 'EXECUTE') then
            raise exception '%', format('the role of the sidecar may not execute function %s', called.printed) using
                errcode = 'insufficient_privilege',
                hint = format('grant execute on function %s to %I', called.printed,
                    pg_get_userbyid(pgtrickle.sidecar_role()));
        end if;
    end loop;
end
$$;

-- check_trust: refuse a query that would run untrusted code: in functions that it reaches, or when PostgreSQL
-- plans a read of its sources.
create or replace function pgtrickle_internal.check_trust(query_view oid, reader oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    reached record;
    code text;
begin
    for reached in
        select o.classid, o.objid, case o.classid
            when 'pg_proc'::regclass then (select not pgtrickle_internal.is_trusted(p.proowner) from pg_proc p where p.oid = o.objid)
            else false end as is_untrusted,
            (pg_identify_object(o.classid, o.objid, 0)).schema as schema_name
        from pgtrickle_internal.reached_objects(query_view, reader) o order by o.classid, o.objid
    loop
        if reached.schema_name ~ '^pg_temp' and reached.classid <> 'pg_class'::regclass then
            raise exception '%', format('the query uses %s, which disappears with its session',
                    pg_describe_object(reached.classid, reached.objid, 0)) using
                errcode = 'feature_not_supported', hint = 'Create it in a schema that is not temporary.';
        elsif reached.is_untrusted then
            raise exception '%', format('the query calls %s, which %I could change to act with the rights of the sidecar',
                    reached.objid::regprocedure, (select pg_get_userbyid(p.proowner) from pg_proc p
                        where p.oid = reached.objid)) using
                errcode = 'TA003',
                hint = format('The function would run as %1$I. Let an administrator take it over: '
                    'alter function %2$s owner to %1$I.',
                    pg_get_userbyid(pgtrickle.sidecar_role()), reached.objid::regprocedure);
        end if;
    end loop;
    select c.code into code from pgtrickle_internal.untrusted_reading(
        array(select r.relation_id from pgtrickle_internal.relations_of(query_view, reader) r)) c(code) limit 1;
    if code is not null then
        perform pgtrickle_internal.refuse_reading(code);
    end if;
end
$$;

-- refuse_reading: raise the error for a source that runs untrusted code when it is read.
create or replace function pgtrickle_internal.refuse_reading(code text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception '%', format('a refresh would run code of another role with the rights of the sidecar: %s', code) using
        errcode = 'TA003',
        hint = format('PostgreSQL evaluates it while it plans a query. Let an administrator take the function over: '
            'alter function ... owner to %I.', pg_get_userbyid(pgtrickle.sidecar_role()));
end
$$;

-- check_rules: refuse parts of a query that have no stored meaning, whatever they read.
create or replace function pgtrickle_internal.check_rules(query_view oid, reader oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    select case
        when action ~ ':tablesample \{' then 'samples a table (TABLESAMPLE)'
        when action ~ ':rowMarks \(' then 'locks rows (FOR UPDATE or FOR SHARE)'
        when action ~ '\{SQLVALUEFUNCTION :op (9|1[0-4]) ' then 'asks who is reading (CURRENT_USER or the like)'
        when action ~ '\{VAR :varno \d+ :varattno -\d+ ' then 'reads a system column (ctid, xmin, tableoid or the like)'
        end into problem
    from pgtrickle_internal.rules_of(query_view, reader)
    order by 1 limit 1;
    if problem is not null then
        raise exception 'the query %', problem using
            errcode = 'feature_not_supported',
            hint = 'Then its result does not depend on the rows of its sources alone. Remove that part.';
    end if;
    if exists (
        select from pgtrickle_internal.rules_of(query_view, reader) r
        join pgtrickle_internal.relations_of(query_view, reader) f on true
        join pg_inherits i on i.inhparent = f.relation_id
        where pg_get_viewdef(r.view_id) ~ '\mONLY\M')
    then
        raise exception 'the query reads a table without its children (ONLY)' using
            errcode = 'feature_not_supported',
            hint = 'Read the whole table, or keep the rows you want in a table of their own.';
    end if;
end
$$;

-- row_security_applies: whether a role sees only some rows of a table.
create or replace function pgtrickle_internal.row_security_applies(relation_id oid, role_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.relrowsecurity and not r.rolsuper and not r.rolbypassrls
        and (c.relforcerowsecurity or not pg_has_role(r.oid, c.relowner, 'USAGE'))
    from pg_class c, pg_roles r
    where c.oid = relation_id and r.oid = role_id
$$;

-- tree_of: a table, its partitions and its children at every level.
create or replace function pgtrickle_internal.tree_of(relation_id oid) returns setof oid
language sql stable rows 2 set search_path = pg_catalog, pg_temp
as $$
    with recursive tree(id) as (
        select relation_id
        union
        select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id
    )
    select id from tree
$$;
