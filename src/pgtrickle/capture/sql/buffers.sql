-- buffers: the two change buffers of a source, and the trigger function that fills one of them.
-- Run as the sidecar's role. Reads and writes pgtrickle.pgt_sources; creates in pgtrickle_changes.

-- captured_expression: a column of a source as SQL over the transition row `r`.
-- A virtual generated column is not stored, so it is computed from the columns that are.
create or replace function pgtrickle.captured_expression(source oid, number smallint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when a.attgenerated = 'v' then '(' || pg_get_expr(e.adbin, e.adrelid) || ')'
        else format('r.%I', a.attname) end
    from pg_attribute a
    left join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
    where a.attrelid = source and a.attnum = number
$$;

-- relied_on: the columns that the trigger function names: those captured, and those that virtual ones need.
create or replace function pgtrickle.relied_on(source oid, numbers smallint[])
returns table (column_name name, type_id oid)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select a.attname, a.atttypid
    from pg_attribute a
    where a.attrelid = source and a.attnum > 0 and not a.attisdropped and (a.attnum = any (numbers) or exists (
        select from pg_attrdef e join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = e.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid = source
        where e.adrelid = source and e.adnum = any (numbers) and d.refobjsubid = a.attnum))
    order by a.attnum
$$;

-- intact_columns: the captured columns that are still what their buffer column was made for.
create or replace function pgtrickle.intact_columns(source oid, numbers smallint[]) returns smallint[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(a.attnum order by a.attnum), '{}')
    from pg_attribute a
    join pg_attribute b on b.attrelid = to_regclass(format('pgtrickle_changes.changes_%s_0', source))
        and b.attname = 'c' || a.attnum and b.atttypid = a.atttypid
    where a.attrelid = source and a.attnum = any (numbers) and not a.attisdropped
$$;

-- compose_capture: write the trigger function of a source, for the buffer that is active.
-- The table may be altered under us, and the application must go on writing: where a column is no
-- longer what it was, or a child no longer belongs to the table, nothing of ours may fail. A change
-- that cannot be captured leaves the marker of a truncation (weight 0): everything is to be read anew.
-- Every write of the application runs this, so conditions with a subquery stand alone: beside another
-- condition they would make plpgsql start the executor even where the other one decides. For the same
-- reason every name and operator is written in full instead of setting a search_path, which costs a
-- fifth of the whole; only the expressions of virtual columns, which are not ours, need one. To look for the
-- columns costs half of the whole: where there are tables of rows, PostgreSQL does it as it plans.
create or replace function pgtrickle.compose_capture(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $compose$
declare
    captured pgtrickle.pgt_sources;
    numbers smallint[];
    is_by_row boolean;
    body text := $body$
#variable_conflict use_column
declare
    is_altered boolean := false;
begin
    if tg_relid operator(pg_catalog.<>) %1$s::pg_catalog.oid then
        if not exists (
            with recursive up(id) as (
                select tg_relid
                union
                select i.inhparent
                from up join pg_catalog.pg_inherits i on i.inhrelid operator(pg_catalog.=) up.id
            )
            select from up where up.id operator(pg_catalog.=) %1$s::pg_catalog.oid)
        then
            return null;
        end if;
        is_altered := %2$s;
    elsif tg_op operator(pg_catalog.=) 'INSERT' then
        is_altered := %9$s;
    elsif tg_op operator(pg_catalog.=) 'UPDATE' then
        is_altered := %9$s;
    elsif tg_op operator(pg_catalog.=) 'DELETE' then
        is_altered := %10$s;
    end if;
    if is_altered or tg_op operator(pg_catalog.=) 'TRUNCATE' then
        insert into %3$s (weight) values (0);
    elsif tg_op operator(pg_catalog.=) 'INSERT' then
        insert into %3$s (weight%4$s) select 1%5$s from %7$s;
    elsif tg_op operator(pg_catalog.=) 'DELETE' then
        insert into %3$s (weight%4$s) select -1%5$s from %6$s;
    else
        insert into %3$s (weight%4$s) select -1%5$s from %6$s union all select 1%5$s from %7$s;
    end if;
    -- a statement that changed no row is nobody's business
    if found then
        %8$s
    end if;
    return null;
end
$body$;
begin
    select * into strict captured from pgtrickle.pgt_sources s where s.source_relid = source;
    numbers := pgtrickle.intact_columns(source, captured.columns_captured);
    is_by_row := captured.trigger_level = 'row';
    execute format(
        'create or replace function pgtrickle_changes.capture_%s() returns trigger '
        'language plpgsql security definer %s as %L',
        source, case when exists (
            select from pg_attribute a
            where a.attrelid = source and a.attnum = any (numbers) and a.attgenerated = 'v')
            then 'set search_path = pg_catalog, pg_temp' else '' end,
        format(body, source, pgtrickle.altered_condition(source, numbers),
            format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer),
            (select string_agg(format(', c%s', n), '' order by n) from unnest(numbers) n),
            (select string_agg(', ' || pgtrickle.captured_expression(source, n), '' order by n)
                from unnest(numbers) n),
            case when is_by_row then '(select old.*) r' else 'old_rows r' end,
            case when is_by_row then '(select new.*) r' else 'new_rows r' end,
            pgtrickle.touching(source, is_by_row),
            case when is_by_row then pgtrickle.altered_condition(source, numbers)
                else pgtrickle.planned_condition(source, numbers, 'new_rows') end,
            case when is_by_row then pgtrickle.altered_condition(source, numbers)
                else pgtrickle.planned_condition(source, numbers, 'old_rows') end));
    execute format('revoke all on function pgtrickle_changes.capture_%s() from public', source);
    update pgtrickle.pgt_sources s set shape = pgtrickle.capture_shape(source, s.columns_captured)
    where s.source_relid = source;
end
$compose$;

-- capture_shape: tells trigger functions apart that capture different columns, or the same ones differently.
create or replace function pgtrickle.capture_shape(source oid, numbers smallint[]) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select md5(concat_ws('|', pgtrickle.altered_condition(source, intact.numbers), (
        select string_agg(pgtrickle.captured_expression(source, n), ',' order by n)
        from unnest(intact.numbers) n)))
    from pgtrickle.intact_columns(source, numbers) as intact(numbers)
$$;

-- altered_condition: SQL that is true in the trigger once a column it relies on is not what it was.
create or replace function pgtrickle.altered_condition(source oid, numbers smallint[]) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when count(*) = 0 then 'false' else format('exists (select from (values %s) as e(name, type) '
        'where not exists (select from pg_catalog.pg_attribute a where a.attrelid operator(pg_catalog.=) tg_relid '
        'and a.attname operator(pg_catalog.=) e.name and a.atttypid operator(pg_catalog.=) e.type))',
        string_agg(format('(%L::pg_catalog.name, %s::pg_catalog.oid)', column_name, type_id), ', ')) end
    from pgtrickle.relied_on(source, numbers)
$$;

-- planned_condition: the same where a statement's trigger has a table of its rows, decided once for each plan.
-- The function is folded into the plan, and what is a table of the source's rows makes PostgreSQL plan anew
-- once the source is altered; it is counted only if the function is true, so that no rows need be there.
create or replace function pgtrickle.planned_condition(source oid, numbers smallint[], rows_of name) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when count(*) = 0 then 'false' else format('pgtrickle.is_altered(%s::pg_catalog.oid, '
        '%L::pg_catalog.name[], %L::pg_catalog.oid[]) and (select pg_catalog.count(*) from %I) is not null',
        source, array_agg(column_name), array_agg(type_id), rows_of) end
    from pgtrickle.relied_on(source, numbers)
$$;

-- is_altered: whether a table does not have these columns of these types now.
-- Not immutable, but declared so: planned_condition says why. It asks the parser and no catalog, because
-- the snapshot of a repeatable-read writer may be older than the columns that its statement has.
create or replace function pgtrickle.is_altered(source oid, names name[], types oid[]) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    found_types oid[];
begin
    execute format('select array[%s]::oid[] from (select null::%s) as t(r)', (
        select string_agg(format('pg_typeof((r).%I)', u.name), ', ' order by u.number)
        from unnest(names) with ordinality as u(name, number)), source::regclass) into found_types;
    return found_types is distinct from types;
exception when others then
    -- nothing of ours may fail: what was altered beyond recognition is altered
    return true;
end
$$;

-- create_buffers: make both buffers hold the given columns of the source.
-- Types go without their modifier: a column that is widened must still fit. A column whose type has
-- changed starts anew; whoever reads it starts anew as well.
create or replace function pgtrickle.create_buffers(source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    buffer text;
    number smallint;
begin
    foreach buffer in array array[format('changes_%s_0', source), format('changes_%s_1', source)] loop
        if to_regclass('pgtrickle_changes.' || buffer) is null then
            execute format(
                'create table pgtrickle_changes.%I ('
                'xid xid8 not null default pg_current_xact_id(), weight smallint not null)', buffer);
            execute format('create index on pgtrickle_changes.%I (xid)', buffer);
        end if;
        for number in select n from unnest(numbers) n
            join pg_attribute a on a.attrelid = source and a.attnum = n and not a.attisdropped
        loop
            if exists (
                select from pg_attribute a join pg_attribute b
                    on b.attrelid = to_regclass('pgtrickle_changes.' || buffer) and b.attname = 'c' || a.attnum
                where a.attrelid = source and a.attnum = number and b.atttypid <> a.atttypid)
            then
                execute format('alter table pgtrickle_changes.%I drop column %I', buffer, 'c' || number);
            end if;
            execute (
                select format('alter table pgtrickle_changes.%I add column if not exists %I %s%s',
                    buffer, 'c' || a.attnum, format_type(a.atttypid, -1),
                    case when a.attcollation <> 0 then (
                        select format(' collate %I.%I', n.nspname, l.collname)
                        from pg_collation l join pg_namespace n on n.oid = l.collnamespace
                        where l.oid = a.attcollation) else '' end)
                from pg_attribute a where a.attrelid = source and a.attnum = number);
        end loop;
    end loop;
end
$$;
