-- attached: tables of other databases as sources. A query names a stand-in, a local table without rows that has the
-- columns and keys of the origin. Its rows are in a copy, like those of a materialized view; the sidecar brings the
-- copy from one snapshot of the other database to a later one. Run as the sidecar's role.

-- stand_in_name: the name of the stand-in of a table. PostgreSQL allows 63 bytes.
create or replace function pgtrickle_internal.stand_in_name(alias text, origin_schema text, origin_name text) returns name
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select case when octet_length(f.name) < 64 then f.name
        else convert_from(convert_to(left(f.name, 20), 'UTF8'), 'UTF8') || ' ' || md5(f.name) end
    from (select format('%s.%s.%s', alias, origin_schema, origin_name)) f(name)
$$;

-- missing_type: the first column of an origin whose type or collation does not exist here, in words; null if all do. A
-- text that to_regtype accepts is the name of a type and nothing else, so it can be part of a statement.
create or replace function pgtrickle_internal.missing_type(definition jsonb) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    c record;
begin
    for c in select * from pgtrickle_internal.described_columns(definition)
    loop
        begin
            if to_regtype(c.type) is null then
                return format('column %I has the type %s', c.name, c.type);
            elsif c.collation_name is not null
                and to_regcollation(format('%I.%I', c.collation_schema, c.collation_name)) is null
            then
                return format('column %I has the collation %I.%I', c.name, c.collation_schema, c.collation_name);
            end if;
        exception when others then
            return format('column %I has the type %s', c.name, c.type);
        end;
    end loop;
    return null;
end
$$;

-- described_columns: the columns of an origin, as another database described them.
create or replace function pgtrickle_internal.described_columns(definition jsonb)
returns table (name name, number integer, type text, collation_schema name, collation_name name, is_never_null boolean, declared text, place bigint)
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select c.name, c.number, c.type, c.collation_schema, c.collation_name, c.is_never_null,
        c.type || case when c.collation_name is null then ''
            else format(' collate %I.%I', c.collation_schema, c.collation_name) end, row_number() over ()
    from jsonb_to_recordset(definition -> 'columns')
        as c(name name, number integer, type text, collation_schema name, collation_name name, is_never_null boolean)
$$;

-- fit_stand_in: create the stand-in of an attached table, or alter it to the definition of its origin. What stream tables
-- rely on changes with it, and they react as they do when a local table is altered.
create or replace function pgtrickle_internal.fit_stand_in(id bigint, definition jsonb) returns oid
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
    set default_tablespace = '' set default_table_access_method = heap
as $$
declare
    attached pgtrickle.pgt_attached_tables;
    relation_id oid;
    part record;
    stand_in text;
begin
    select * into strict attached from pgtrickle.pgt_attached_tables t where t.table_id = id for update;
    if pgtrickle_internal.missing_type(definition) is not null then
        raise exception '%', pgtrickle_internal.missing_type(definition) || ', which does not exist here' using
            errcode = 'undefined_object', hint = 'Create it here, too.';
    end if;
    relation_id := attached.source_relid;
    if not exists (select from pg_class c where c.oid = relation_id) then
        stand_in := format('pgtrickle_attached.%I',
            pgtrickle_internal.stand_in_name(attached.alias, attached.origin_schema, attached.origin_name));
        execute format('create table %s ()', stand_in);
        relation_id := stand_in::regclass::oid;
        execute format('comment on table %s is %L', stand_in, format('Stands for %I.%I of the attached database %s. Its rows '
            'are there, and pgtrickle keeps a copy of what stream tables read.', attached.origin_schema,
            attached.origin_name, attached.alias));
        update pgtrickle.pgt_attached_tables t set source_relid = relation_id where t.table_id = id;
    end if;
    stand_in := pgtrickle_internal.printed(relation_id);
    -- the keys come last, so they go first
    for part in select i.indexrelid::regclass::text as name from pg_index i where i.indrelid = relation_id
    loop
        execute format('drop index %s', part.name);
    end loop;
    -- a column that was renamed keeps its number
    for part in
        select old.name as old_name, new.name from pgtrickle_internal.described_columns(attached.definition) old
        join pgtrickle_internal.described_columns(definition) new on new.number = old.number and new.name <> old.name
        where attached.definition -> 'relation' = definition -> 'relation'
    loop
        if not exists (select from pgtrickle_internal.column_types(relation_id) t where t.column_name = part.name) then
            execute format('alter table %s rename column %I to %I', stand_in, part.old_name, part.name);
        end if;
    end loop;
    for part in
        select present.column_name as old_name, present.declared as old_type, wanted.name, wanted.declared as type,
            wanted.is_never_null
        from pgtrickle_internal.declared_columns(relation_id) present
        full join pgtrickle_internal.described_columns(definition) wanted on wanted.name = present.column_name
        order by wanted.place nulls first
    loop
        if part.name is null then
            execute format('alter table %s drop column %I', stand_in, part.old_name);
            continue;
        elsif part.old_name is null then
            execute format('alter table %s add column %I %s', stand_in, part.name, part.type);
        elsif part.old_type <> part.type then
            execute format('alter table %s alter column %I drop not null', stand_in, part.name);
            execute format('alter table %s alter column %I type %s using null', stand_in, part.name, part.type);
        end if;
        if part.is_never_null <> pgtrickle_internal.is_never_null(relation_id, part.name) then
            execute format('alter table %s alter column %I %s not null', stand_in, part.name,
                case when part.is_never_null then 'set' else 'drop' end);
        end if;
    end loop;
    for part in select key from jsonb_array_elements(definition -> 'keys') key
    loop
        execute format('create unique index on %s (%s)', stand_in,
            (select string_agg(format('%I', name), ', ' order by position)
                from jsonb_array_elements_text(part.key) with ordinality as k(name, position)));
    end loop;
    update pgtrickle.pgt_attached_tables t
    set definition = fit_stand_in.definition, frontier = null, position = null, last_error = null where t.table_id = id;
    return relation_id;
end
$$;

-- index_attached: give the copy of an attached table the indexes of its origin, over columns that it holds.
create or replace function pgtrickle_internal.index_attached(source oid, indexes jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp set default_tablespace = ''
as $$
declare
    wanted record;
begin
    for wanted in
        select array(select n::name from jsonb_array_elements_text(i) n) as names from jsonb_array_elements(indexes) i
        except
        select c.column_names from pgtrickle_internal.plain_indexes(pgtrickle_internal.copy_of(source)::regclass) c
    loop
        if wanted.names <@ array(select a.attname from pgtrickle.pgt_sources s join pg_attribute a
            on a.attrelid = s.source_relid and a.attnum = any (s.columns_captured) and not a.attisdropped
            where s.source_relid = source)
        then
            execute format('create index on %s (%s)', pgtrickle_internal.copy_of(source),
                (select string_agg(format('%I', name), ', ' order by position)
                    from unnest(wanted.names) with ordinality as part(name, position)));
        end if;
    end loop;
end
$$;

-- fit_attached: give the copy of an attached table, and its buffers, the columns of its stand-in.
create or replace function pgtrickle_internal.fit_attached(source oid) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if pgtrickle_internal.misfit(source) is null then
        return false;
    end if;
    perform pgtrickle_internal.fit_copy(source, (
        select s.columns_captured from pgtrickle.pgt_sources s where s.source_relid = source));
    return true;
end
$$;

-- create_incoming: a temporary table for the changes of an attached table: k1 to kn for the columns `names`. Those that are
-- not read here are taken as text.
create or replace function pgtrickle_internal.create_incoming(source oid, names name[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
begin
    execute format('drop table if exists pg_temp.incoming_%s', source);
    execute format('create temporary table incoming_%s (xid xid8, weight smallint%s) on commit drop', source, (
        select string_agg(format(', k%s %s', n.position, coalesce(d.declared, 'text')), '' order by n.position)
        from unnest(names) with ordinality as n(name, position)
        left join pgtrickle.pgt_sources s on s.source_relid = source
        left join pgtrickle_internal.declared_columns(source) d on d.column_name = n.name and d.number = any (s.columns_captured)));
end
$$;

-- receive_all: make the copy of an attached table equal to the rows in pg_temp.rows_N, and record the differences.
create or replace function pgtrickle_internal.receive_all(source oid) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    captured pgtrickle.pgt_sources;
    changes bigint;
begin
    select * into strict captured from pgtrickle.pgt_sources s where s.source_relid = source;
    execute pgtrickle_internal.comparison(source, format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer),
        captured.filled_at is null, format('pg_temp.rows_%s', source));
    get diagnostics changes = row_count;
    if changes > 0 then
        perform pgtrickle_internal.touch(source);
    end if;
    update pgtrickle.pgt_sources s set filled_at = clock_timestamp() where s.source_relid = source and s.filled_at is null;
    return changes;
end
$$;

-- receive_changes: add changes to the copy of an attached table and to its change buffer. pg_temp.incoming_N has them: xid,
-- weight, and k1 to kn for the columns `names`, of which the copy may have only some. What the snapshot `seen` includes is
-- in the copy already. `key` are columns that have an index in the copy and are never null, so that a deleted row is
-- found fast; there may be none. Rows are matched as text, as in a comparison. Raises if a row to delete is not there.
create or replace function pgtrickle_internal.receive_changes(source oid, names name[], key name[], seen pg_snapshot) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
    set extra_float_digits = 1 set datestyle = 'ISO' set intervalstyle = 'postgres'
as $$
declare
    captured pgtrickle.pgt_sources;
    statement text;
    missing bigint;
    changes bigint;
begin
    select * into strict captured from pgtrickle.pgt_sources s where s.source_relid = source;
    select format($body$
        with net as materialized (
            select row(%1$s)::text as line, sum(i.weight) as weight, min(i.ctid) as place
            from pg_temp.incoming_%2$s i where not pg_visible_in_snapshot(i.xid, $1)
            group by 1 having sum(i.weight) <> 0
        ), gone as (
            delete from %3$s c where c.ctid = any (array(
                select found.place from (
                    select s.place, -n.weight as copies, row_number() over (partition by n.line) as number
                    from net n join pg_temp.incoming_%2$s i on i.ctid = n.place %4$s
                    where n.weight < 0) found
                where found.number <= found.copies)) returning c.ctid
        ), come as materialized (
            select i.* from net n join pg_temp.incoming_%2$s i on i.ctid = n.place, generate_series(1, n.weight)
            where n.weight > 0
        ), added as (
            insert into %3$s %5$s select %1$s from come i
        ), recorded as (
            insert into %6$s (weight%7$s)
            select 1%8$s from come i union all
            select -1%8$s from net n join pg_temp.incoming_%2$s i on i.ctid = n.place, generate_series(1, -n.weight)
            where n.weight < 0 returning 1
        )
        select (select coalesce(-sum(weight), 0) from net where weight < 0) - (select count(*) from gone),
            (select count(*) from recorded)
        $body$,
        string_agg(format('i.k%s', n.position), ', ' order by a.attnum), source, pgtrickle_internal.copy_of(source),
        -- with a key, the index finds each row; the planner does not know that the changes are few
        case when key = '{}' then format('join (select c.ctid as place, row(%s)::text as line from %s c) s on s.line = n.line',
                string_agg(format('c.%I', a.attname), ', ' order by a.attnum), pgtrickle_internal.copy_of(source))
            else format('cross join lateral (select c.ctid as place from %s c where %s and row(%s)::text = n.line offset 0) s',
                pgtrickle_internal.copy_of(source),
                (select string_agg(format('c.%I = i.k%s', k.name, array_position(names, k.name)), ' and ') from unnest(key) k(name)),
                string_agg(format('c.%I', a.attname), ', ' order by a.attnum)) end,
        '(' || string_agg(format('%I', a.attname), ', ' order by a.attnum) || ')',
        format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer),
        string_agg(format(', c%s', a.attnum), '' order by a.attnum),
        string_agg(format(', i.k%s', n.position), '' order by a.attnum))
    into statement
    from pg_attribute a join unnest(names) with ordinality as n(name, position) on n.name = a.attname
    where a.attrelid = source and a.attnum = any (captured.columns_captured) and not a.attisdropped;
    execute statement into missing, changes using seen;
    if missing <> 0 then
        raise exception '%', format('%s rows of %s are not in the copy of them', missing, pgtrickle_internal.printed(source))
        using errcode = 'TR002', hint = 'The copy is compared with the table, and corrected.';
    end if;
    if changes > 0 then
        perform pgtrickle_internal.touch(source);
    end if;
    return changes;
end
$$;

-- foreign_origins: the foreign tables that stream tables read and compare, and the tables that they lead to. Only those whose
-- owner, and whose server's owner, are trusted: the sidecar reads the origin with rights that the owner may not have. And only
-- those that have the names of the origin for their columns.
create or replace function pgtrickle_internal.foreign_origins()
returns table (source oid, server_name name, host text, port text, dbname text, origin_schema text, origin_name text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.oid, s.srvname, o.options ->> 'host', coalesce(o.options ->> 'port', '5432'), o.options ->> 'dbname',
        coalesce(t.options ->> 'schema_name', n.nspname), coalesce(t.options ->> 'table_name', c.relname)
    from pg_foreign_table f
    join pg_class c on c.oid = f.ftrelid
    join pg_namespace n on n.oid = c.relnamespace
    join pg_foreign_server s on s.oid = f.ftserver
    join pg_foreign_data_wrapper w on w.oid = s.srvfdw
    cross join lateral (select coalesce(jsonb_object_agg(option_name, option_value), '{}')
        from pg_options_to_table(s.srvoptions)) o(options)
    cross join lateral (select coalesce(jsonb_object_agg(option_name, option_value), '{}')
        from pg_options_to_table(f.ftoptions)) t(options)
    where w.fdwname = 'postgres_fdw' and pgtrickle_internal.is_trusted(c.relowner) and pgtrickle_internal.is_trusted(s.srvowner)
        and not exists (select from pg_attribute a where a.attrelid = c.oid and exists (
            select from pg_options_to_table(a.attfdwoptions) where option_name = 'column_name'))
        and not pgtrickle_internal.is_attached(c.oid)
        and exists (select from pgtrickle.pgt_dependencies d where d.source_relid = c.oid and d.source_type = 'foreign_table')
$$;

-- adopt_origin: follow the origin of a table that stream tables read, instead of comparing or capturing the table itself.
-- Its readers are loaded again.
create or replace function pgtrickle_internal.adopt_origin(source oid, alias text, reference text, origin_schema text, origin_name text)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into pgtrickle.pgt_attached_databases (alias, reference) values (adopt_origin.alias, adopt_origin.reference)
    on conflict do nothing;
    insert into pgtrickle.pgt_attached_tables (alias, origin_schema, origin_name, source_relid, is_stand_in)
    values (adopt_origin.alias, adopt_origin.origin_schema, adopt_origin.origin_name, source, false);
    perform pgtrickle_internal.reanalyse(d.pgt_id, format('the origin of %s is followed', pgtrickle_internal.printed(source)))
    from (select distinct d.pgt_id from pgtrickle.pgt_dependencies d
        where d.source_relid = source and d.source_type not in ('view', 'function') order by 1) d;
end
$$;

-- release_origin: compare or capture the table itself again. Its readers are loaded again.
create or replace function pgtrickle_internal.release_origin(source oid, reason text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgtrickle.pgt_attached_tables t where t.source_relid = source and not t.is_stand_in;
    perform pgtrickle_internal.reanalyse(d.pgt_id, reason)
    from (select distinct d.pgt_id from pgtrickle.pgt_dependencies d
        where d.source_relid = source and d.source_type not in ('view', 'function') order by 1) d;
end
$$;

-- unlike_origin: how a table differs from its origin, in words; null if every column has the same name and type there.
create or replace function pgtrickle_internal.unlike_origin(source oid, definition jsonb) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('column %I is %s here, and %s there', c.column_name, c.type, coalesce(o.type, 'missing'))
    from pgtrickle_internal.column_types(source) c
    left join pgtrickle_internal.described_columns(definition) o on o.name = c.column_name
    where o.type is distinct from c.type limit 1
$$;
