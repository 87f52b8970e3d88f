-- buffers: the two change buffers of a source, and the trigger function that fills one of them.
-- Run as the sidecar's role. Reads and writes pgtrickle.pgt_sources; creates in pgtrickle_changes.

-- base_type: the type below a domain, at any depth; any other type is its own base. Buffers, copies and state hold
-- values of base types: a domain of the application must not refuse a row with nulls that we add, and a constraint
-- that is added to the domain must not be checked against old rows that we still keep.
create or replace function pgtrickle_internal.base_type(type_id oid) returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with recursive below(id, depth) as (
        select type_id, 0
        union all
        select t.typbasetype, b.depth + 1 from below b join pg_type t on t.oid = b.id and t.typtype = 'd'
    )
    select id from below order by depth desc limit 1
$$;

-- captured_expression: a column of a source as SQL over the transition row `r`. A virtual generated column is not
-- stored, so it is computed from the columns that are.
create or replace function pgtrickle_internal.captured_expression(source oid, number smallint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when a.attgenerated = 'v' then '(' || pg_get_expr(e.adbin, e.adrelid) || ')'
        else format('r.%I', a.attname) end
    from pg_attribute a
    left join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
    where a.attrelid = source and a.attnum = number
$$;

-- relied_on: the columns that the trigger function names: the captured ones, and those that virtual ones need.
create or replace function pgtrickle_internal.relied_on(source oid, numbers smallint[])
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

-- intact_columns: the captured columns that still match their buffer column. An earlier version declared some
-- buffer columns with a domain.
create or replace function pgtrickle_internal.intact_columns(source oid, numbers smallint[]) returns smallint[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(a.attnum order by a.attnum), '{}')
    from pg_attribute a
    join pg_attribute b on b.attrelid = to_regclass(format('pgtrickle_changes.changes_%s_0', source))
        and b.attname = 'c' || a.attnum and b.atttypid in (a.atttypid, pgtrickle_internal.base_type(a.atttypid))
    where a.attrelid = source and a.attnum = any (numbers) and not a.attisdropped
$$;

-- capture_body: the trigger function of a source, for the buffer that is active.
-- The application's writes must succeed whatever happens to the table or to us, so nothing in the function may
-- fail. What it calls and writes to is in pgtrickle_changes, and DROP SCHEMA ... CASCADE also drops its triggers.
-- It notices any smaller damage before it uses the damaged object:
--   * It first checks, with built-in functions only, that it may call capture_state.
--   * capture_state returns whether a change can be captured (0), can only be marked (1), or leaves nothing (2).
--     If the source has other partitions or children than the sidecar knows (3), a change is marked: its rows may
--     belong to one that is dropped, without a trace, before the sidecar polls.
--     The call is folded into the plan. PostgreSQL plans again once a relation whose OID is among its arguments, or
--     any schema, is altered. So a write only pays for a constant.
-- A change that cannot be captured leaves the marker of a truncation (weight 0): all rows are read again. If not
-- even that is possible, the sidecar detects that something is missing, repairs it, and reads all rows again.
-- Every write of the application runs this, so conditions with a subquery stand alone: next to another condition
-- they would make plpgsql start the executor even if the other one decides. Other conditions are few: plpgsql
-- prepares each of them once in every transaction. For the same reason every name and
-- operator is qualified instead of setting a search_path, which takes a fifth of the total time. Only the
-- expressions of virtual columns, which are not ours, need one. They may also fail where PostgreSQL would fail only
-- on reading, and a row that just fits on a page of the source does not fit in a buffer, which has two more
-- columns: only these two cases run in a block with an exception handler.
create or replace function pgtrickle_internal.capture_body(source oid) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $compose$
declare
    captured pgtrickle.pgt_sources;
    numbers smallint[];
    is_by_row boolean;
    is_guarded boolean;
    buffer text;
    body text := $body$
#variable_conflict use_column
declare
    capture_state pg_catalog.int4;
begin
    if (pg_catalog.has_schema_privilege(%11$L::pg_catalog.oid, 'USAGE')
        and pg_catalog.has_function_privilege(%12$L::pg_catalog.oid, 'EXECUTE')) is not true
    then
        return null;
    end if;
    capture_state := %9$s;
    if capture_state operator(pg_catalog.<>) 0 or tg_relid operator(pg_catalog.<>) %1$s::pg_catalog.oid then
        if capture_state operator(pg_catalog.=) 2 then
            return null;
        end if;
        if capture_state operator(pg_catalog.=) 3 then
            capture_state := %14$s;
        end if;
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
            if capture_state operator(pg_catalog.=) 0 then
                capture_state := %2$s;
            end if;
        end if;
    end if;
    if capture_state operator(pg_catalog.=) 0 and tg_op operator(pg_catalog.=) 'INSERT' then
        %10$s
        insert into %3$s (weight%4$s) select 1%5$s from %7$s;
        %13$s
    elsif capture_state operator(pg_catalog.=) 0 and tg_op operator(pg_catalog.=) 'UPDATE' then
        %10$s
        insert into %3$s (weight%4$s) select -1%5$s from %6$s union all select 1%5$s from %7$s;
        %13$s
    elsif capture_state operator(pg_catalog.=) 0 and tg_op operator(pg_catalog.=) 'DELETE' then
        %10$s
        insert into %3$s (weight%4$s) select -1%5$s from %6$s;
        %13$s
    else
        insert into %3$s (weight) values (0);
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
    numbers := pgtrickle_internal.intact_columns(source, captured.columns_captured);
    is_by_row := captured.trigger_level = 'row';
    buffer := format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer);
    is_guarded := pgtrickle_internal.has_virtual(source, numbers) or pgtrickle_internal.may_outgrow(buffer);
    return format(body, source, pgtrickle_internal.altered_condition(source, numbers), buffer,
        (select string_agg(format(', c%s', n), '' order by n) from unnest(numbers) n),
        (select string_agg(', ' || pgtrickle_internal.captured_expression(source, n), '' order by n) from unnest(numbers) n),
        case when is_by_row then '(select old.*) r' else 'old_rows r' end,
        case when is_by_row then '(select new.*) r' else 'new_rows r' end,
        pgtrickle_internal.touching(source, is_by_row),
        pgtrickle_internal.state_call(source, numbers, buffer),
        case when is_guarded then 'begin' else '' end,
        (select n.oid from pg_namespace n where n.nspname = 'pgtrickle_changes'),
        pgtrickle_internal.state_function(),
        case when is_guarded then format($fallback$
        exception when others then
            if sqlstate operator(pg_catalog.~) '^(40|53|54(?!000)|55|57|58|XX)' then
                raise;
            end if;
            insert into %s (weight) values (0);
        end;$fallback$, buffer) else '' end,
        pgtrickle_internal.tree_condition(source));
end
$compose$;

-- sorted_tree: a table, its partitions and its children at every level, ordered by OID.
create or replace function pgtrickle_internal.sorted_tree(source oid) returns oid[]
language sql stable set search_path = pg_catalog, pg_temp
as $$ select array(select t.id from pgtrickle_internal.tree_of(source) t(id) order by t.id) $$;

-- tree_condition: an SQL expression for a trigger function: 1 while the source has other partitions or children
-- than now, else 0.
create or replace function pgtrickle_internal.tree_condition(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('(with recursive present(id) as (select %L::pg_catalog.oid union select i.inhrelid from present p '
        'join pg_catalog.pg_inherits i on i.inhparent operator(pg_catalog.=) p.id) '
        'select case when pg_catalog.array_agg(p.id order by p.id) operator(pg_catalog.=) %L::pg_catalog.oid[] '
        'then 0 else 1 end from present p)', source, pgtrickle_internal.sorted_tree(source))
$$;

-- has_virtual: whether one of these columns is computed whenever it is read.
create or replace function pgtrickle_internal.has_virtual(source oid, numbers smallint[]) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pg_attribute a
        where a.attrelid = source and a.attnum = any (numbers) and a.attgenerated = 'v')
$$;

-- may_outgrow: whether a row of a buffer may be too large for a page although the row of its source is not. A
-- value that TOAST moves out of the row leaves at most 24 bytes in it; one that TOAST cannot move has no bound.
create or replace function pgtrickle_internal.may_outgrow(buffer text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with page(room) as (select current_setting('block_size')::integer - 32)
    select 32 + count(*) / 8 + sum(case
            when a.attlen = -1 and a.attstorage = 'p' then p.room
            when a.attlen = -1 then 24 + 3
            else a.attlen + case a.attalign when 'd' then 7 when 'i' then 3 when 's' then 1 else 0 end end)
        > min(p.room)
    from page p, pg_attribute a where a.attrelid = to_regclass(buffer) and a.attnum > 0
$$;

-- exact_settings: the settings under which the virtual columns of a writer's rows are computed. Some functions
-- depend on them although they are immutable, such as the output functions of floats and bytea. A refresh must
-- read the same values from the table as the writer's session captured.
create or replace function pgtrickle_internal.exact_settings() returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select 'set datestyle = ''ISO, MDY'' set intervalstyle = postgres set bytea_output = hex '
        'set extra_float_digits = 1 set quote_all_identifiers = off'
$$;

-- compose_capture: create the trigger function of a source with its current body.
create or replace function pgtrickle_internal.compose_capture(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    numbers smallint[] := (select s.columns_captured from pgtrickle.pgt_sources s where s.source_relid = source);
begin
    execute format(
        'create or replace function pgtrickle_changes.capture_%s() returns trigger '
        'language plpgsql security definer %s as %L',
        source, case when pgtrickle_internal.has_virtual(source, pgtrickle_internal.intact_columns(source, numbers))
            then 'set search_path = pg_catalog, pg_temp ' || pgtrickle_internal.exact_settings() else '' end,
        pgtrickle_internal.capture_body(source));
    execute format('revoke all on function pgtrickle_changes.capture_%s() from public', source);
    update pgtrickle.pgt_sources s set shape = pgtrickle_internal.capture_shape(source, s.columns_captured),
        parts = pgtrickle_internal.capture_parts(source), body = (
            select md5(p.prosrc) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where n.nspname = 'pgtrickle_changes' and p.proname = format('capture_%s', source))
    where s.source_relid = source;
end
$$;

-- capture_parts: the OIDs that the trigger function of a source uses, null for what does not exist. Then those of
-- the partitions and children that it knows.
create or replace function pgtrickle_internal.capture_parts(source oid) returns oid[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select array[pgtrickle_internal.state_function(), pgtrickle_internal.change_table('touched_0'), pgtrickle_internal.change_table('touched_1'),
        pgtrickle_internal.change_table(format('changes_%s_0', source)), pgtrickle_internal.change_table(format('changes_%s_1', source))]
        || pgtrickle_internal.sorted_tree(source)
$$;

-- state_call: the call of capture_state for a source and its active buffer, with constant arguments. The OIDs are
-- written as text: only then are they constants of the query from the start, so that the query depends on them.
create or replace function pgtrickle_internal.state_call(source oid, numbers smallint[], buffer text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('pgtrickle_changes.capture_state(%L::pg_catalog.oid, %L::pg_catalog.name[], '
        '%L::pg_catalog.oid[], %L::pg_catalog.oid, %L::pg_catalog.name[], %L::pg_catalog.oid[], '
        '%L::pg_catalog.oid, %L::pg_catalog.oid, %L::pg_catalog.oid, array[%s])',
        source,
        (select coalesce(array_agg(r.column_name), '{}') from pgtrickle_internal.relied_on(source, numbers) r),
        (select coalesce(array_agg(r.type_id), '{}') from pgtrickle_internal.relied_on(source, numbers) r),
        to_regclass(buffer)::oid,
        (select coalesce(array_agg('c' || n order by n), '{}') from unnest(numbers) n),
        (select coalesce(array_agg(b.atttypid order by n), '{}') from unnest(numbers) n
            join pg_attribute b on b.attrelid = to_regclass(buffer) and b.attname = 'c' || n),
        to_regclass('pgtrickle_changes.touched_0')::oid, to_regclass('pgtrickle_changes.touched_1')::oid,
        'pgtrickle.pgt_sources'::regclass::oid,
        (select string_agg(format('%L::pg_catalog.oid', t.id), ', ' order by t.id)
            from pgtrickle_internal.tree_of(source) t(id)))
$$;

-- capture_shape: distinguishes trigger functions that capture different columns, or the same ones differently.
create or replace function pgtrickle_internal.capture_shape(source oid, numbers smallint[]) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select md5(concat_ws('|', (
        select string_agg(format('%I %s', r.column_name, r.type_id), ',') from pgtrickle_internal.relied_on(source, intact.numbers) r), (
        select string_agg(pgtrickle_internal.captured_expression(source, n), ',' order by n)
        from unnest(intact.numbers) n)))
    from pgtrickle_internal.intact_columns(source, numbers) as intact(numbers)
$$;

-- altered_condition: an SQL expression for the trigger of a child: 1 once a column that it relies on was altered,
-- else 0.
create or replace function pgtrickle_internal.altered_condition(source oid, numbers smallint[]) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when count(*) = 0 then '0' else format('(case when exists (select from (values %s) as e(name, type) '
        'where not exists (select from pg_catalog.pg_attribute a where a.attrelid operator(pg_catalog.=) tg_relid '
        'and a.attname operator(pg_catalog.=) e.name and a.atttypid operator(pg_catalog.=) e.type)) then 1 else 0 end)',
        string_agg(format('(%L::pg_catalog.name, %s::pg_catalog.oid)', column_name, type_id), ', ')) end
    from pgtrickle_internal.relied_on(source, numbers)
$$;

-- create_buffers: make both buffers hold the given columns of the source, by their base types.
-- Types have no modifier: a column that is widened must still fit. A column whose type has changed starts empty,
-- and its readers are reloaded. A column that an earlier version declared with a domain keeps its rows. A column
-- that the source no longer has is dropped: its type must not depend on us for ever. The tablespace and access
-- method that the session has set for new tables do not apply to our tables. A buffer has no index: it would cost
-- a writer as much as the rows themselves. Rotation keeps buffers small, and index_retired is for those that grow.
create or replace function pgtrickle_internal.create_buffers(source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
    set default_tablespace = '' set default_table_access_method = heap
as $$
declare
    buffer text;
    alterations text;
begin
    foreach buffer in array array[format('pgtrickle_changes.changes_%s_0', source),
        format('pgtrickle_changes.changes_%s_1', source)]
    loop
        if not pgtrickle_internal.is_buffer(buffer) then
            execute format('drop table if exists %s', buffer);
            execute format('create table %s ('
                'xid xid8 not null default pg_current_xact_id(), weight smallint not null)', buffer);
        end if;
        select string_agg(part, ', ' order by rank, number) into alterations
        from pgtrickle_internal.buffer_alterations(source, buffer, numbers);
        if alterations is not null then
            execute format('alter table %s %s', buffer, alterations);
        end if;
    end loop;
end
$$;

-- is_buffer: whether a buffer of that name exists and can be written and read, whatever columns it captures.
create or replace function pgtrickle_internal.is_buffer(buffer text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(has_table_privilege(pgtrickle.sidecar_role(), b.id, 'INSERT')
        and has_table_privilege(pgtrickle.sidecar_role(), b.id, 'SELECT')
        and (select count(*) = 2 from pg_attribute a where a.attrelid = b.id and not a.attisdropped
            and (a.attname, a.atttypid) in (('xid', 'xid8'::regtype), ('weight', 'int2'::regtype))), false)
    from (select to_regclass(buffer)::oid) b(id)
$$;

-- buffer_alterations: the alterations that make a buffer hold the given columns; drops come first.
create or replace function pgtrickle_internal.buffer_alterations(source oid, buffer text, numbers smallint[])
returns table (rank integer, number smallint, part text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with present as (
        select substr(b.attname::text, 2)::smallint as number, b.atttypid
        from pg_attribute b
        where b.attrelid = to_regclass(buffer) and b.attnum > 0 and not b.attisdropped and b.attname ~ '^c\d+$'
    ), wanted as (
        select a.attnum as number, pgtrickle_internal.base_type(a.atttypid) as type_id, coalesce((
            select format(' collate %I.%I', n.nspname, l.collname)
            from pg_collation l join pg_namespace n on n.oid = l.collnamespace
            where l.oid = a.attcollation), '') as collated
        from pg_attribute a where a.attrelid = source and a.attnum = any (numbers) and not a.attisdropped
    )
    select 1, p.number, format('drop column %I', 'c' || p.number)
    from present p left join wanted w on w.number = p.number
    where (w.number is null and not exists (
            select from pg_attribute a where a.attrelid = source and a.attnum = p.number and not a.attisdropped))
        or (w.type_id <> p.atttypid and pgtrickle_internal.base_type(p.atttypid) <> w.type_id)
    union all
    select 2, w.number, format('alter column %I type %s%s', 'c' || w.number, format_type(w.type_id, -1), w.collated)
    from present p join wanted w on w.number = p.number
    where w.type_id <> p.atttypid and pgtrickle_internal.base_type(p.atttypid) = w.type_id
    union all
    select 3, w.number, format('add column %I %s%s', 'c' || w.number, format_type(w.type_id, -1), w.collated)
    from wanted w left join present p on p.number = w.number
    where p.number is null or pgtrickle_internal.base_type(p.atttypid) <> w.type_id
$$;
