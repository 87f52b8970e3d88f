-- copies: sources that cannot have our triggers: materialized views and foreign tables. We keep a copy of each. A
-- refresh first compares the source with the copy, and writes the differences to the copy and to the change
-- buffer, from which they are processed like any other change. Run as the sidecar's role.

-- copy_of: the name of the copy of a source, as SQL. It has three parts, unlike the state of any stream table.
create or replace function pgtrickle_internal.copy_of(source oid) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select format('pgtrickle_state.copy_of_%s', source) $$;

-- is_attached: whether a relation stands for a table of another database, whose changes our sidecar follows.
create or replace function pgtrickle_internal.is_attached(relation_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$ select exists (select from pgtrickle.pgt_attached_tables t where t.source_relid = relation_id) $$;

-- source_version: identifies the contents of a materialized view, as of the reading snapshot. Every REFRESH,
-- CONCURRENTLY or not, writes the row of the view in pg_class, and only a REFRESH changes its rows. Null for a
-- foreign table: nothing indicates when it changes.
create or replace function pgtrickle_internal.source_version(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$ select concat_ws(' ', c.xmin, c.ctid, c.relfilenode) from pg_class c where c.oid = source and c.relkind = 'm' $$;

-- column_types: the columns of a relation with their types, base types in place of domains, and their collations.
create or replace function pgtrickle_internal.column_types(relation_id oid)
returns table (number smallint, column_name name, type text, collation_schema name, collation_name name)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select a.attnum, a.attname, format_type(m.id, m.modifier), n.nspname, l.collname
    from pg_attribute a
    left join pg_collation l on l.oid = a.attcollation
    left join pg_namespace n on n.oid = l.collnamespace
    cross join lateral (
        with recursive below(id, modifier, depth) as (
            select a.atttypid, a.atttypmod, 0
            union all
            select t.typbasetype, t.typtypmod, b.depth + 1
            from below b join pg_type t on t.oid = b.id and t.typtype = 'd'
        )
        select b.id, b.modifier from below b order by b.depth desc limit 1
    ) m
    where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped
$$;

-- declared_columns: the columns of a relation as declarations, with base types in place of domains: columns of a
-- copy that are not read stay null, which a domain may refuse.
create or replace function pgtrickle_internal.declared_columns(relation_id oid)
returns table (number smallint, column_name name, declared text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select t.number, t.column_name, t.type || case when t.collation_name is null then ''
        else format(' collate %I.%I', t.collation_schema, t.collation_name) end
    from pgtrickle_internal.column_types(relation_id) t
$$;

-- misfit: the alterations that give the copy the current columns of the source; null if it has them. A column that
-- was renamed or has another type starts empty, and its readers are reloaded.
create or replace function pgtrickle_internal.misfit(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with present as (select * from pgtrickle_internal.declared_columns(to_regclass(pgtrickle_internal.copy_of(source)))),
    wanted as (select * from pgtrickle_internal.declared_columns(source))
    select string_agg(part, ', ' order by number) from (
        select 0 as number, format('drop column %I', column_name) as part from present
        where (column_name, declared) not in (select column_name, declared from wanted)
        union all
        select number, format('add column %I %s', column_name, declared) from wanted
        where (column_name, declared) not in (select column_name, declared from present)
    ) parts
$$;

-- fit_copy: alter the copy, and the buffers of what is captured, to match the source.
create or replace function pgtrickle_internal.fit_copy(source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
    set default_tablespace = '' set default_table_access_method = heap
as $$
declare
    alterations text := pgtrickle_internal.misfit(source);
begin
    execute format('create table if not exists %s ()', pgtrickle_internal.copy_of(source));
    perform pgtrickle_internal.identify_published_rows(to_regclass(pgtrickle_internal.copy_of(source)));
    if alterations is not null then
        execute format('alter table %s %s', pgtrickle_internal.copy_of(source), alterations);
    end if;
    perform pgtrickle_internal.create_buffers(source, numbers);
end
$$;

-- plain_indexes: the columns of each index of a relation that is not partial and only has plain columns.
create or replace function pgtrickle_internal.plain_indexes(relation_id oid) returns table (column_names name[])
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select distinct k.names
    from pg_index i
    join pg_class x on x.oid = i.indexrelid
    join pg_am m on m.oid = x.relam and m.amname = 'btree'
    cross join lateral (
        select array_agg(a.attname order by part.position) as names, bool_and(o.opcdefault) as is_plain
        from unnest(i.indkey::smallint[], i.indclass::oid[]) with ordinality as part(number, class_id, position)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
        join pg_opclass o on o.oid = part.class_id
        where part.position <= i.indnkeyatts) k
    where i.indrelid = relation_id and i.indisvalid and i.indpred is null and 0 <> all (i.indkey::smallint[])
        and k.is_plain
$$;

-- index_copy: give the copy the indexes of its source, over columns that it holds: lookups read the copy.
create or replace function pgtrickle_internal.index_copy(source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set default_tablespace = ''
as $$
declare
    wanted record;
begin
    for wanted in
        select s.column_names from pgtrickle_internal.plain_indexes(source) s
        where s.column_names <@ array(select a.attname from pg_attribute a
            where a.attrelid = source and a.attnum = any (numbers))
        except
        select c.column_names from pgtrickle_internal.plain_indexes(pgtrickle_internal.copy_of(source)::regclass) c
    loop
        execute format('create index on %s (%s)', pgtrickle_internal.copy_of(source),
            (select string_agg(format('%I', name), ', ' order by position)
                from unnest(wanted.column_names) with ordinality as part(name, position)));
    end loop;
end
$$;

-- attached_key: the columns of a unique key of an attached table. The copy holds them too, so that a row which a change
-- deletes is found by an index. None for any other source.
create or replace function pgtrickle_internal.attached_key(source oid) returns smallint[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select array(select a.attnum from pgtrickle.pgt_attached_tables t, jsonb_array_elements_text(t.definition -> 'keys' -> 0) k(name)
        join pg_attribute a on a.attrelid = source and a.attname = k.name and not a.attisdropped
        where t.source_relid = source)
$$;

-- copy_source: keep a copy of these columns of a source from now on. A refresh fills it. Locks: its row in
-- pgt_sources, waiting at most two seconds (55P03 then).
create or replace function pgtrickle_internal.copy_source(source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning set lock_timeout = '2s'
as $$
declare
    captured pgtrickle.pgt_sources;
begin
    numbers := numbers || pgtrickle_internal.attached_key(source);
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for key share;
    if found and captured.trigger_level <> 'none' then
        -- the origin of this table is followed from now on
        execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
        update pgtrickle.pgt_sources s set trigger_level = 'none', filled_at = null where s.source_relid = source;
    elsif found and numbers <@ captured.columns_captured and pgtrickle_internal.misfit(source) is null then
        return;
    end if;
    insert into pgtrickle.pgt_sources (source_relid, trigger_level) values (source, 'none')
    on conflict (source_relid) do nothing;
    perform from pgtrickle.pgt_sources s where s.source_relid = source for update;
    update pgtrickle.pgt_sources s set version = null, columns_captured = array(
        select n from (select unnest(numbers) union select unnest(s.columns_captured)) u(n) order by n)
    where s.source_relid = source returning * into captured;
    perform pgtrickle_internal.fit_copy(source, captured.columns_captured);
    perform pgtrickle_internal.index_copy(source, captured.columns_captured);
exception when lock_not_available then
    raise exception '%', format('%s is locked by a refresh', pgtrickle_internal.printed(source)) using
        errcode = 'lock_not_available',
        hint = 'Try again when the refresh has ended.';
end
$$;

-- comparison: the statement that brings a copy up to date with its source, and records the differences.
-- Rows are compared as text, byte by byte: every type has a text, and it shows every difference that a reader can
-- see (1.0 and 1.00, 0 and -0). Both sides are multisets: surplus duplicates are removed, missing ones are added.
-- The source is read once, so it may change in the meantime. `rows` names the relation that has its rows. With `is_first` the copy has no readers yet, and
-- nothing is recorded. If no column is read, rows are only counted.
drop function if exists pgtrickle_internal.comparison(oid, text, boolean);
create or replace function pgtrickle_internal.comparison(source oid, buffer text, is_first boolean, rows text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format($body$
        with present as materialized (
            select row(%2$s)::text as line%3$s from %6$s
        ), stored as materialized (
            select ctid as place, row(%2$s)::text as line from %7$s
        ), differing as materialized (
            select line, sum(weight) as weight
            from (select line, 1 as weight from present union all select line, -1 from stored) counted
            group by line having sum(weight) <> 0
        ), come as materialized (
            select * from (
                select p.*, d.weight, row_number() over (partition by p.line) as number
                from present p join differing d on d.line = p.line where d.weight > 0) p
            where p.number <= p.weight
        ), gone as (
            delete from %7$s c using (
                select s.place, d.weight, row_number() over (partition by s.line) as number
                from stored s join differing d on d.line = s.line where d.weight < 0) s
            where c.ctid = s.place and s.number <= -s.weight
            returning s.place%4$s
        ), added as (
            insert into %7$s %5$s select %1$s from come
        )
        insert into %8$s (weight%9$s)
        select 1%9$s from come where not %10$L union all select -1%9$s from gone where not %10$L
        $body$,
        string_agg(format('c%s', a.attnum), ', ' order by a.attnum),
        string_agg(format('%I', a.attname), ', ' order by a.attnum),
        string_agg(format(', %I as c%s', a.attname, a.attnum), '' order by a.attnum),
        string_agg(format(', c.%I as c%s', a.attname, a.attnum), '' order by a.attnum),
        '(' || string_agg(format('%I', a.attname), ', ' order by a.attnum) || ')',
        rows, pgtrickle_internal.copy_of(source), buffer,
        string_agg(format(', c%s', a.attnum), '' order by a.attnum), is_first)
    from pgtrickle.pgt_sources s
    join pg_attribute a on a.attrelid = s.source_relid and a.attnum = any (s.columns_captured) and not a.attisdropped
    where s.source_relid = source
$$;

-- compare_source: bring the copy of a source up to date. Returns the number of change rows. Needs a separate
-- transaction in READ COMMITTED mode. Locks: its row in pgt_sources, so that no other session compares it at the
-- same time. The settings make the texts of values exact; all others are those of the sidecar's role.
create or replace function pgtrickle_internal.compare_source(source oid) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
    set extra_float_digits = 1 set datestyle = 'ISO' set intervalstyle = 'postgres'
as $$
declare
    captured pgtrickle.pgt_sources;
    present text;
    changes bigint;
begin
    perform pgtrickle_internal.check_not_copy();
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for no key update;
    if not found or not exists (select from pg_class where oid = source) then
        return 0;
    end if;
    -- read before the rows: if the view is refreshed in between, the versions differ and we compare again
    present := pgtrickle_internal.source_version(source);
    if pgtrickle_internal.misfit(source) is not null then
        perform pgtrickle_internal.fit_copy(source, captured.columns_captured);
    elsif captured.filled_at is not null and captured.version = present then
        return 0;
    end if;
    execute pgtrickle_internal.comparison(source, format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer),
        captured.filled_at is null, pgtrickle_internal.printed(source));
    get diagnostics changes = row_count;
    if changes > 0 then
        perform pgtrickle_internal.touch(source);
    end if;
    update pgtrickle.pgt_sources s set version = present, filled_at = coalesce(s.filled_at, clock_timestamp())
    where s.source_relid = source and (s.filled_at is null or s.version is distinct from present);
    return changes;
end
$$;
