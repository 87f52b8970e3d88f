-- analyse: what a query reads, and whether it may be kept as a stream table.
-- The query is given as a (temporary) view, so that PostgreSQL itself has parsed and resolved it.
-- All of these run as the sidecar's role. What PostgreSQL does not record in pg_depend (its own
-- catalogs and functions, whole rows, volatility) is read from the stored form of the rule.
-- Each says how few rows it returns: expecting the usual thousand, PostgreSQL would read a whole system
-- catalog to join them, and every new stream table would cost more than the one before.

-- rules_of: the rule of the view and of every view below it, with the role that PostgreSQL checks there.
create or replace function pgtrickle.rules_of(query_view oid, reader oid)
returns table (view_id oid, rule_id oid, checked_as oid, action text)
language sql stable rows 2 set search_path = pg_catalog, pg_temp
as $$
    with recursive reached(view_id, checked_as) as (
        select query_view, reader
        union
        select c.oid, case when exists (
                select from unnest(c.reloptions) o where o ~* '^security_invoker=(true|on|yes|1|t|y)$')
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
create or replace function pgtrickle.relations_of(query_view oid, reader oid)
returns table (relation_id oid, checked_as oid, columns smallint[])
language sql stable rows 5 set search_path = pg_catalog, pg_temp
as $$
    with rules as (select * from pgtrickle.rules_of(query_view, reader)),
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
    select relation_id, checked_as,
        coalesce(array_agg(number order by number) filter (where number <> 0), '{}')
    from named group by relation_id, checked_as
$$;

-- functions_of: every function the query calls: by name, as operator, cast, aggregate, or check of a domain.
create or replace function pgtrickle.functions_of(query_view oid, reader oid) returns setof oid
language sql stable rows 20 set search_path = pg_catalog, pg_temp
as $$
    with recursive rules as (select * from pgtrickle.rules_of(query_view, reader)),
    called(id) as (
        select found[1]::oid from rules r,
            regexp_matches(r.action, ':(?:funcid|opfuncid|aggfnoid|winfnoid|hashfuncid|negfuncid) (\d+)', 'g') found
        union
        select o.oprcode::oid from rules r,
            regexp_matches(r.action, ':(?:opno|eqop|sortop) (\d+)', 'g') found
            join pg_operator o on o.oid = found[1]::oid
        union
        select o.oprcode::oid from rules r,
            regexp_matches(r.action, ':opnos \(o ([ \d]+)\)', 'g') found,
            regexp_split_to_table(btrim(found[1]), ' +') listed
            join pg_operator o on o.oid = listed::oid
    ),
    typed(id) as (
        select found[1]::oid from rules r,
            regexp_matches(r.action, ':(?:resulttype|vartype|consttype|funcresulttype) (\d+)', 'g') found
        union
        select next.id from typed t
        join pg_type y on y.oid = t.id
        cross join lateral (
            select y.typbasetype where y.typtype = 'd'
            union all select y.typelem where y.typelem <> 0
            union all select a.atttypid from pg_attribute a
                where a.attrelid = y.typrelid and a.attnum > 0 and not a.attisdropped
            union all select g.rngsubtype from pg_range g where y.oid in (g.rngtypid, g.rngmultitypid)
        ) as next(id)
    )
    select id from called where id <> 0
    union
    select part from called join pg_aggregate g on g.aggfnoid = called.id
        cross join lateral unnest(array[g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn,
            g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::oid[]) part
    where part <> 0
    union
    select d.refobjid from typed t
    join pg_constraint k on k.contypid = t.id
    join pg_depend d on d.classid = 'pg_constraint'::regclass and d.objid = k.oid
        and d.refclassid = 'pg_proc'::regclass
$$;

-- is_trusted: whether code of this owner may run with the rights of the sidecar's role.
-- A query is evaluated by the sidecar; a function of somebody else could read for its owner what
-- only the sidecar may read.
create or replace function pgtrickle.is_trusted(owner_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select r.rolsuper or pg_has_role(r.oid, pgtrickle.sidecar_role(), 'MEMBER')
    from pg_roles r where r.oid = owner_id
$$;

-- check_functions: refuse what does not give the same answer for the same rows, or may not run here.
create or replace function pgtrickle.check_functions(query_view oid, reader oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    called record;
    is_ours boolean;
begin
    for called in
        select p.oid, p.oid::regprocedure::text as printed, p.proname, p.provolatile, p.proowner
        from pgtrickle.functions_of(query_view, reader) f(id) join pg_proc p on p.oid = f.id
        order by p.provolatile desc, p.oid
    loop
        is_ours := called.oid >= 16384;
        if called.provolatile = 'v' then
            raise exception '%', format('the query calls the volatile function %s', called.printed) using
                errcode = 'feature_not_supported',
                hint = 'Its answer changes from call to call, so no stored result can be right. '
                    'Remove it, or declare it immutable if it really is.';
        elsif called.provolatile = 's' and (is_ours
            or (called.proname ~ '^(pg_|has_|txid_|inet_(client|server)_|current_|session_|row_security|'
                    '(obj|col|shobj)_description|to_reg|version$|(table|schema|database|query|cursor)_to_xml)'
                and called.proname <> 'pg_typeof'))
        then
            raise exception '%', format('the query calls %s, which may read more than its arguments',
                    called.printed) using
                errcode = 'feature_not_supported',
                hint = 'A stream table follows only the tables its query names. '
                    'If the function reads nothing but its arguments, declare it immutable.';
        elsif is_ours and not pgtrickle.is_trusted(called.proowner) then
            raise exception '%', format('the query calls %s, which %I could make read in its name',
                    called.printed, pg_get_userbyid(called.proowner)) using
                errcode = 'insufficient_privilege',
                hint = format('The function would run as %1$I. Let an administrator take it over: '
                    'alter function %2$s owner to %1$I.',
                    pg_get_userbyid(pgtrickle.sidecar_role()), called.printed);
        elsif not has_function_privilege(reader, called.oid, 'EXECUTE') then
            raise exception '%', format('permission denied for function %s', called.printed) using
                errcode = 'insufficient_privilege',
                hint = format('%I may not execute it.', pg_get_userbyid(reader));
        elsif not has_function_privilege(pgtrickle.sidecar_role(), called.oid, 'EXECUTE') then
            raise exception '%', format('pgtrickle may not execute function %s', called.printed) using
                errcode = 'insufficient_privilege',
                hint = format('grant execute on function %s to %I', called.printed,
                    pg_get_userbyid(pgtrickle.sidecar_role()));
        end if;
    end loop;
end
$$;

-- check_rules: refuse parts of a query that have no stored meaning, whatever they read.
create or replace function pgtrickle.check_rules(query_view oid, reader oid) returns void
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
    from pgtrickle.rules_of(query_view, reader)
    order by 1 limit 1;
    if problem is not null then
        raise exception 'the query %', problem using
            errcode = 'feature_not_supported',
            hint = 'Its answer does not follow from the rows of its sources alone. Remove that part.';
    end if;
    if exists (
        select from pgtrickle.rules_of(query_view, reader) r
        join pgtrickle.relations_of(query_view, reader) f on true
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
create or replace function pgtrickle.row_security_applies(relation_id oid, role_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.relrowsecurity and not r.rolsuper and not r.rolbypassrls
        and (c.relforcerowsecurity or not pg_has_role(r.oid, c.relowner, 'USAGE'))
    from pg_class c, pg_roles r
    where c.oid = relation_id and r.oid = role_id
$$;

-- tree_of: a table, its partitions and its children at every level.
create or replace function pgtrickle.tree_of(relation_id oid) returns setof oid
language sql stable rows 2 set search_path = pg_catalog, pg_temp
as $$
    with recursive tree(id) as (
        select relation_id
        union
        select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id
    )
    select id from tree
$$;
