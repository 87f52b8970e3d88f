-- bulk: create many stream tables in one call, all or none of them.
-- bulk_create sets no search_path: the queries mean what they mean in the caller's session.

-- option_problem: what is wrong with one option of a definition; null if nothing is.
create or replace function pgtrickle_internal.option_problem(option text, value jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    type text := jsonb_typeof(value);
begin
    if option = any ('{name,query}') then
        return case when type <> 'string' then format('%s is %s, not a string', option, type) end;
    elsif option = any ('{initialize,append_only,pooler_compatibility_mode}') then
        return case when type not in ('boolean', 'null') then format('%s is %s, not true or false', option, value) end;
    elsif option <> all ('{schedule,refresh_mode,diamond_consistency,diamond_schedule_policy,cdc_mode,tier,'
        'refresh_timeout,on_divergence,keep_changes,auxiliary_results}'::text[])
    then
        return format('there is no option %s', to_json(option));
    elsif type not in ('string', 'null') then
        return format('%s is %s, not a string', option, value);
    end if;
    perform pgtrickle_internal.options(
        case option when 'schedule' then value #>> '{}' end, case option when 'refresh_mode' then value #>> '{}' end, null,
        case option when 'diamond_consistency' then value #>> '{}' end,
        case option when 'diamond_schedule_policy' then value #>> '{}' end,
        case option when 'cdc_mode' then value #>> '{}' end, null, null, case option when 'tier' then value #>> '{}' end,
        case option when 'refresh_timeout' then value #>> '{}' end, case option when 'on_divergence' then value #>> '{}' end,
        case option when 'keep_changes' then value #>> '{}' end,
        case option when 'auxiliary_results' then value #>> '{}' end);
    return null;
exception when others then
    return sqlerrm;
end
$$;

-- definition_problems: what is wrong with a list of definitions, as far as that can be said without creating them.
-- Definitions are numbered from 0, like the elements of the array.
create or replace function pgtrickle_internal.definition_problems(definitions jsonb) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with given as (
        select e.definition, jsonb_typeof(e.definition) as type, e.number - 1 as number,
            case when jsonb_typeof(e.definition -> 'name') = 'string' then e.definition ->> 'name' end as name
        from jsonb_array_elements(case jsonb_typeof(definitions) when 'array' then definitions else '[]' end)
            with ordinality e(definition, number)
    ), problems(number, name, problem) as (
        select g.number, g.name, format('it is %s, not an object', g.type) from given g where g.type <> 'object'
        union all
        select g.number, g.name, format('it has no %s', k.key)
        from given g cross join (values ('name'), ('query')) k(key) where g.type = 'object' and not g.definition ? k.key
        union all
        select g.number, g.name, p.problem
        from given g
        cross join lateral jsonb_each(case g.type when 'object' then g.definition else '{}' end) e
        cross join lateral (select pgtrickle_internal.option_problem(e.key, e.value)) p(problem)
        where p.problem is not null
        union all
        select g.number, g.name, 'an earlier definition has the same name'
        from given g where exists (select from given o where o.name = g.name and o.number < g.number)
    )
    select format('the definitions are %s, not an array', coalesce(jsonb_typeof(definitions), 'null'))
    where jsonb_typeof(definitions) is distinct from 'array'
    union all
    select s.line from (
        select format('definition %s%s: %s', p.number, ' (' || p.name || ')', p.problem) as line
        from problems p order by p.number, p.problem) s
$$;

-- bulk_create: create stream tables that may read one another, in any order. A definition whose query names something
-- that does not exist yet is tried again when others have been created.
create or replace function pgtrickle.bulk_create(definitions jsonb) returns jsonb
language plpgsql
as $$
declare
    problems text[] := array(select pgtrickle_internal.definition_problems(definitions));
    total integer;
    ids bigint[];
    waiting integer[];
    later integer[];
    number integer;
    definition jsonb;
    place text;
    failure_state text;
    said text;
    explained text;
    advice text;
    query_view oid;
begin
    if pg_catalog.cardinality(problems) operator(pg_catalog.>) 0 then
        raise exception '%', pg_catalog.format('nothing was created: %s', problems[1]) using
            errcode = 'invalid_parameter_value',
            detail = pg_catalog.array_to_string(problems, E'\n'),
            hint = 'Give an array of objects with name, query and the options of pgtrickle.create_stream_table.';
    end if;
    total := pg_catalog.jsonb_array_length(definitions);
    waiting := array(select n from pg_catalog.generate_series(0, total operator(pg_catalog.-) 1) n);
    while pg_catalog.cardinality(waiting) operator(pg_catalog.>) 0 loop
        later := '{}';
        foreach number in array waiting loop
            definition := definitions operator(pg_catalog.->) number;
            begin
                perform pgtrickle_internal.create_defined(definition);
                ids[number] := pgtrickle_internal.stream_table(pgtrickle_internal.full_name(definition operator(pg_catalog.->>) 'name'));
            exception when others then
                get stacked diagnostics failure_state = returned_sqlstate, said = message_text,
                    explained = pg_exception_detail, advice = pg_exception_hint;
                -- a table or schema-qualified name that another definition may create
                if failure_state operator(pg_catalog.=) '42P01' then
                    later := pg_catalog.array_append(later, number);
                    place := coalesce(place, pg_catalog.format('definition %s (%s): %s', number,
                        definition operator(pg_catalog.->>) 'name', said));
                else
                    raise exception '%', pg_catalog.format('nothing was created: definition %s (%s): %s', number,
                            definition operator(pg_catalog.->>) 'name', said) using
                        errcode = failure_state, detail = coalesce(explained, ''), hint = coalesce(advice, '');
                end if;
            end;
        end loop;
        if pg_catalog.cardinality(later) operator(pg_catalog.=) pg_catalog.cardinality(waiting) then
            raise exception '%', pg_catalog.format('nothing was created: %s', place) using
                errcode = 'undefined_table',
                hint = 'Every table that a query reads must exist or be defined in the same call, and definitions must '
                    'not read one another in a cycle.';
        end if;
        waiting := later;
        place := null;
    end loop;
    -- a query must not mean something else now that all of them exist
    for number in 0 .. total operator(pg_catalog.-) 1 loop
        definition := definitions operator(pg_catalog.->) number;
        query_view := pgtrickle_internal.view_of(definition operator(pg_catalog.->>) 'query');
        if pgtrickle_internal.canonical_of(query_view) operator(pg_catalog.<>) (
            select s.defining_query from pgtrickle.pgt_stream_tables s where s.pgt_id operator(pg_catalog.=) ids[number])
        then
            raise exception '%', pg_catalog.format('nothing was created: definition %s (%s) reads a name that another '
                    'definition creates in an earlier schema of the search_path', number, definition operator(pg_catalog.->>) 'name') using
                errcode = 'invalid_parameter_value', hint = 'Write schema.name in its query.';
        end if;
        perform pgtrickle_internal.drop_view(query_view);
    end loop;
    return (
        select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', pgtrickle_internal.shown_name(ids[n]),
            'status', 'created', 'pgt_id', ids[n]) order by n), '[]')
        from pg_catalog.generate_series(0, total operator(pg_catalog.-) 1) n);
end
$$;
comment on function pgtrickle.bulk_create(jsonb) is
    E'Create several stream tables, or none of them if one cannot be created. They may read one another, in any order. '
    'Returns an array with the name, status and pgt_id of each. Call it with SELECT. Needs the same rights as '
    'create_stream_table. It is one transaction, which holds more than ten locks for each stream table: for more than '
    'about 300 with the default of max_locks_per_transaction, call it several times.\n'
    '\ndefinitions: An array of objects. Each has a name and a query, and may have any option of create_stream_table '
    'under its name: [{"name": "sales", "query": "select ...", "schedule": "1m"}].';

-- create_defined: create the stream table of one definition.
create or replace function pgtrickle_internal.create_defined(definition jsonb) returns void
language sql
as $$
    select pgtrickle.create_stream_table(
        definition operator(pg_catalog.->>) 'name', definition operator(pg_catalog.->>) 'query',
        case when definition operator(pg_catalog.?) 'schedule' then definition operator(pg_catalog.->>) 'schedule' else 'calculated' end,
        coalesce(definition operator(pg_catalog.->>) 'refresh_mode', 'AUTO'),
        coalesce((definition operator(pg_catalog.->>) 'initialize')::boolean, true),
        definition operator(pg_catalog.->>) 'diamond_consistency', definition operator(pg_catalog.->>) 'diamond_schedule_policy',
        definition operator(pg_catalog.->>) 'cdc_mode',
        coalesce((definition operator(pg_catalog.->>) 'append_only')::boolean, false),
        coalesce((definition operator(pg_catalog.->>) 'pooler_compatibility_mode')::boolean, false),
        definition operator(pg_catalog.->>) 'tier', definition operator(pg_catalog.->>) 'refresh_timeout',
        definition operator(pg_catalog.->>) 'on_divergence', definition operator(pg_catalog.->>) 'keep_changes',
        definition operator(pg_catalog.->>) 'auxiliary_results')
$$;

-- full_name: the name that a new stream table gets, with its schema.
create or replace function pgtrickle_internal.full_name(given text) returns text
language sql stable
as $$
    select pg_catalog.format('%I.%I', n.parts[1], n.parts[2]) from (select pgtrickle_internal.new_name(given)) n(parts)
$$;
