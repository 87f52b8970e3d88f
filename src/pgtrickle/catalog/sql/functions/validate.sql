-- validate: what can be said about a query before it becomes a stream table. Only the sidecar and the commands of
-- pgtrickle can compile a query. SQL knows the mode if a stream table has the same query, or if the query has only
-- parts that are always followed; otherwise it says that it does not know, and who does.

-- constructs_of: the parts of a query and of the views that it reads.
create or replace function pgtrickle_internal.constructs_of(query_view oid) returns table (check_name text, result text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with trees as materialized (
        select string_agg(r.action, ' ') as tree from pgtrickle_internal.rules_of(query_view, 0) r
    ), calls as materialized (
        select distinct p.oid, p.proname, p.prokind, p.provolatile, p.proretset
        from trees t, regexp_matches(t.tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') found
        join pg_proc p on p.oid = found[1]::oid
    )
    select * from (
        select 'aggregate', c.proname::text from calls c where c.prokind = 'a'
        union all
        select 'window_function', c.proname from calls c where c.prokind = 'w'
        union all
        select distinct 'join', case found[1] when '0' then 'INNER' when '1' then 'LEFT_OUTER' when '2' then 'FULL_OUTER'
            when '3' then 'RIGHT_OUTER' else 'OTHER' end
        from trees t, regexp_matches(t.tree, '\{JOINEXPR :jointype (\d+)', 'g') found
        union all
        select distinct 'set_op', case found[1] when '1' then 'UNION' when '2' then 'INTERSECT' else 'EXCEPT' end
            || case found[2] when 'true' then '_ALL' else '' end
        from trees t, regexp_matches(t.tree, '\{SETOPERATIONSTMT :op (\d) :all (true|false)', 'g') found
        union all
        select p.name, p.meaning from trees t cross join (values
            ('subquery', '\{SUBLINK ', 'the query has a subquery in an expression'),
            ('recursive_cte', ':hasRecursive true', 'the query uses WITH RECURSIVE'),
            ('distinct', ':distinctClause \(', 'the query has DISTINCT'),
            ('distinct_on', ':hasDistinctOn true', 'the query has DISTINCT ON'),
            ('grouping_sets', ':groupingSets \(', 'the query has grouping sets'),
            ('order_by', ':sortClause \(', 'the query has ORDER BY'),
            ('limit', ':(limitCount|limitOffset) \{', 'the query has LIMIT or OFFSET'),
            ('set_returning', ':hasTargetSRFs true', 'the query has a function that returns sets in its select list'),
            ('table_function', ':rtekind [34] ', 'the query reads a function'),
            ('lateral', ':lateral true', 'the query has LATERAL'),
            ('window', ':hasWindowFuncs true', 'the query has window functions'),
            ('clock', '\{SQLVALUEFUNCTION ', 'the query reads the clock or the session')
        ) p(name, pattern, meaning) where t.tree ~ p.pattern
        union all
        select 'volatility', case max(array_position('{i,s,v}', c.provolatile::text)) when 3 then 'volatile' when 2 then 'stable'
            else 'immutable' end from calls c
    ) found(check_name, result) order by 1, 2
$$;

-- doubt_about: why it is not certain that a query can be followed; null if it is certain. All kinds of expressions,
-- joins, groups and unions of common types are followed. The list is short on purpose: a part that is not on it may be
-- followed as well.
create or replace function pgtrickle_internal.doubt_about(query_view oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with trees as materialized (
        select string_agg(r.action, ' ') as tree from pgtrickle_internal.rules_of(query_view, 0) r
    )
    select coalesce(
        (select case c.check_name when 'aggregate' then 'the query has the aggregate ' || c.result
                when 'volatility' then 'the query calls a function that is ' || c.result else c.result end
            from pgtrickle_internal.constructs_of(query_view) c
            where c.check_name in ('subquery', 'recursive_cte', 'distinct_on', 'grouping_sets', 'order_by', 'limit', 'set_returning',
                    'table_function', 'lateral', 'window', 'clock')
                or c.check_name = 'volatility' and c.result <> 'immutable'
                or c.check_name = 'aggregate' and c.result <> all ('{count,sum,avg,min,max,bool_and,bool_or}') limit 1),
        (select 'the query relies on ' || p.what from (values
            ('a function, operator or type that is not part of PostgreSQL',
                ':(?:funcid|opno|opfuncid|aggfnoid|consttype|vartype|resulttype|funcresulttype|opresulttype|collation|'
                'varcollid|constcollid|opcollid|inputcollid) (?:\d{6,}|[2-9]\d{4}|1[7-9]\d{3}|16[4-9]\d{2}|163(?:8[4-9]|9\d))[ }]'),
            ('a whole row', '\{VAR :varno \d+ :varattno 0 '),
            ('rows without columns', ':colTypes <>')
        ) p(what, pattern), trees t where t.tree ~ p.pattern limit 1),
        -- json, xml and others have no equality, and sums of floats depend on the order
        (select 'the query has values of the type ' || format_type(y.oid, null)
            from trees t, regexp_matches(t.tree, ':vartype (\d+)', 'g') found
            join pg_type y on y.oid = found[1]::oid
            cross join lateral (select case when y.typcategory = 'A' then y.typelem else y.oid end) e(id)
            where e.id in (700, 701) and t.tree ~ ':hasAggs true'
                -- varchar is compared as text
                or e.id <> 1043 and not exists (
                    select from pg_opclass o join pg_am a on a.oid = o.opcmethod and a.amname in ('btree', 'hash')
                    where o.opcdefault and o.opcintype = e.id)
            limit 1),
        -- far below every limit of the compiler, whose depth counts parentheses, conditions and CASE
        (select 'the query is very large' from trees t
            where (select count(*) from regexp_matches(t.tree, '\{(?:OPEXPR|BOOLEXPR|CASEWHEN|FUNCEXPR|RTE|RANGETBLENTRY) ', 'g')) > 200),
        (select 'the query reads no table' where not exists (select from pgtrickle_internal.relations_of(query_view, 0))))
$$;

-- mode_of: the mode that a query would get under AUTO, and why, as far as SQL knows it; UNDECIDED otherwise.
create or replace function pgtrickle_internal.mode_of(query_view oid) returns table (mode text, reason text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select m.mode, m.reason from (
        (select 1, s.effective_refresh_mode, coalesce(s.downgrade_reason, format('the stream table %s has this query',
            pgtrickle_internal.shown_name(s.pgt_id)))
        from pgtrickle.pgt_stream_tables s
        where s.defining_query = pgtrickle_internal.canonical_of(query_view) and s.refresh_mode <> 'FULL'
            and s.effective_refresh_mode is not null and not s.needs_reinit
            and not exists (select from jsonb_each(pgtrickle_internal.session_settings()) e where s.settings -> e.key <> e.value)
        order by s.pgt_id limit 1)
        union all
        (select 2, 'FULL', format('view %s is a security barrier', pgtrickle_internal.printed(c.oid))
        from pgtrickle_internal.relations_of(query_view, 0) r join pg_class c on c.oid = r.relation_id and c.relkind = 'v'
        where exists (select from pg_options_to_table(c.reloptions) o
            where o.option_name = 'security_barrier' and o.option_value::boolean)
        order by c.oid limit 1)
        union all
        select 3, case when d.doubt is null then 'DIFFERENTIAL' else 'UNDECIDED' end,
            coalesce(d.doubt || ': `pgtrickle validate` compiles the query and says for certain', 'every part of it can be followed')
        from (select pgtrickle_internal.doubt_about(query_view)) d(doubt)
    ) m(place, mode, reason) order by m.place limit 1
$$;

-- validate_query: check a query as create_stream_table would, and take back what that did.
create or replace function pgtrickle.validate_query(query text) returns table (check_name text, result text, severity text)
language plpgsql
as $$
declare
    room text := pgtrickle_internal.trial_schema(pg_catalog.current_schemas(false));
    query_view oid;
    known record;
    grants text[];
    found jsonb := '[]';
    mistake jsonb;
    state text;
    said text;
    explained text;
    advice text;
begin
    begin
        query_view := pgtrickle_internal.view_of(query);
        perform pgtrickle_internal.check_text(query_view);
        select m.mode, m.reason into known from pgtrickle_internal.mode_of(query_view) m;
        grants := array(
            select g from pgtrickle_internal.missing_grants(query_view,
                pg_catalog.quote_ident(current_user)::pg_catalog.regrole::pg_catalog.oid) g
            union
            select g from pgtrickle_internal.missing_room(room) g);
        found := coalesce((
            select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(f.name, f.result, f.severity) order by f.place, f.name, f.result)
            from (
                select n, 'output_column', c, 'INFO'
                from pg_catalog.unnest(pgtrickle_internal.columns_of(query_view)) with ordinality o(c, n)
                union all
                select 10002, 'source', pgtrickle_internal.printed(r.relation_id), 'INFO' from pgtrickle_internal.relations_of(query_view, 0) r
                union all
                select 10003, c.check_name, c.result, 'INFO' from pgtrickle_internal.constructs_of(query_view) c
                union all
                select 10004, 'missing_grant', g, 'ERROR' from pg_catalog.unnest(grants) g
            ) f(place, name, result, severity)), '[]');
        if room is not null then
            perform pg_catalog.set_config('client_min_messages', 'warning', true);
            perform pgtrickle.create_stream_table(pg_catalog.format('%I.%I', room, 'pgtrickle_'
                || pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', '')), query, schedule => null);
        end if;
        raise exception using errcode = 'PT001';
    exception
        when sqlstate 'PT001' then null;
        when others then
            get stacked diagnostics state = returned_sqlstate, said = message_text, explained = pg_exception_detail,
                advice = pg_exception_hint;
            -- the missing grants say it better
            if state operator(pg_catalog.<>) '42501' or coalesce(pg_catalog.cardinality(grants), 0) operator(pg_catalog.=) 0 then
                mistake := pg_catalog.jsonb_build_array(pg_catalog.format('%s (%s)', said, state), explained, advice);
            end if;
    end;
    if mistake is not null or pg_catalog.cardinality(grants) operator(pg_catalog.>) 0 then
        return query values ('resolved_refresh_mode'::text, 'REFUSED'::text, 'ERROR'::text);
    else
        return query values ('resolved_refresh_mode'::text, known.mode,
            case known.mode when 'DIFFERENTIAL' then 'INFO' else 'WARNING' end);
        return query values ('reason'::text, known.reason, 'INFO'::text);
    end if;
    return query select p.name, mistake operator(pg_catalog.->>) p.place, 'ERROR'::text
        from (values ('error', 0), ('detail', 1), ('hint', 2)) p(name, place)
        where mistake operator(pg_catalog.->>) p.place operator(pg_catalog.<>) '';
    return query select f operator(pg_catalog.->>) 0, f operator(pg_catalog.->>) 1, f operator(pg_catalog.->>) 2
        from pg_catalog.jsonb_array_elements(found) with ordinality e(f, place) order by e.place;
end
$$;
comment on function pgtrickle.validate_query(text) is
    E'Check a query without creating anything: whether it can be a stream table, how it would be refreshed, what it is made '
    'of, and what it lacks. Call it with SELECT ... FROM. It runs with your rights. SQL cannot compile a query, so the mode '
    'may be UNDECIDED; the command pgtrickle validate always knows it.\n'
    '\nquery: The query: one SELECT, without a semicolon.'
    '\ncheck_name: What the row is about. The first row is resolved_refresh_mode.'
    '\nresult: For resolved_refresh_mode the mode that the query would get under AUTO: DIFFERENTIAL, FULL, UNDECIDED, or '
    'REFUSED if it cannot be a stream table. For other rows what was found, in words; for missing_grant the statement '
    'that helps.'
    '\nseverity: INFO, WARNING or ERROR.';
