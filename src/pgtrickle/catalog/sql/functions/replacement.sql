-- replacement: build a filled table and put it in the place of a relation, as the owner of both. Readers see the old
-- relation until the caller commits. They wait only for the last part, which writes nothing but catalog rows.

-- build_replacement: create a table with the rows of `content` under a name that nobody uses, with the columns'
-- settings, indexes and constraints of the old relation as far as its columns remain. Takes no lock that readers or
-- writers of the old relation notice.
create or replace function pgtrickle_internal.build_replacement(old oid, content oid) returns oid
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    printed text := (select format('%I.%I', n.nspname, format('pgtrickle_%s', replace(gen_random_uuid()::text, '-', '')))
        from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = old);
    options text := (
        select string_agg(format('%s%I = %L', o.prefix, o.option_name, o.option_value), ', ')
        from (
            select '' as prefix, p.* from pg_class c cross join lateral pg_options_to_table(c.reloptions) p where c.oid = old
            union all
            select 'toast.', p.* from pg_class c join pg_class t on t.oid = c.reltoastrelid
            cross join lateral pg_options_to_table(t.reloptions) p where c.oid = old
        ) o);
    place text := (select s.spcname from pg_class c join pg_tablespace s on s.oid = c.reltablespace where c.oid = old);
    replacement oid;
begin
    begin
        -- a refresh finds rows by ctid, which other access methods may not support
        execute format('create table %s using heap', printed) || coalesce(' with (' || options || ')', '')
            || coalesce(' tablespace ' || quote_ident(place), '') || format(' as table %s', pgtrickle_internal.printed(content));
    exception when duplicate_column or invalid_table_definition or program_limit_exceeded then
        raise exception 'a table cannot have the columns of this query: %', sqlerrm using
            errcode = sqlstate, hint = 'Give each column a name and a type that a table can have.';
    end;
    replacement := printed::regclass;
    perform pgtrickle_internal.carry_columns(old, replacement);
    perform pgtrickle_internal.carry_indexes(old, replacement);
    execute format('analyze %s', printed);
    return replacement;
end
$$;

-- carry_columns: give the columns of a replacement the settings that they have in the old relation.
create or replace function pgtrickle_internal.carry_columns(old oid, replacement oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    kept record;
    printed text := pgtrickle_internal.printed(replacement);
begin
    for kept in
        select o.*, r.attstorage as new_storage from unnest(pgtrickle_internal.kept_columns(old, replacement)) k(name)
        join pg_attribute o on o.attrelid = old and o.attname = k.name
        join pg_attribute r on r.attrelid = replacement and r.attname = k.name
    loop
        if coalesce(kept.attstattarget, -1) >= 0 then
            execute format('alter table %s alter column %I set statistics %s', printed, kept.attname, kept.attstattarget);
        end if;
        if kept.attstorage <> kept.new_storage then
            execute format('alter table %s alter column %I set storage %s', printed, kept.attname,
                case kept.attstorage when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end);
        end if;
        if kept.attcompression <> '' then
            execute format('alter table %s alter column %I set compression %s', printed, kept.attname,
                case kept.attcompression when 'l' then 'lz4' else 'pglz' end);
        end if;
        if kept.attoptions is not null then
            execute format('alter table %s alter column %I set (%s)', printed, kept.attname, (
                select string_agg(format('%I = %L', o.option_name, o.option_value), ', ')
                from pg_options_to_table(kept.attoptions) o));
        end if;
        if kept.attnotnull then
            execute format('alter table %s alter column %I set not null', printed, kept.attname);
        end if;
    end loop;
end
$$;

-- carry_indexes: create the indexes and constraints of the old relation whose columns remain. Their names are still in
-- use, so each gets a name that says which one it replaces.
create or replace function pgtrickle_internal.carry_indexes(old oid, replacement oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    columns name[] := pgtrickle_internal.kept_columns(old, replacement);
    printed text := pgtrickle_internal.printed(replacement);
    kept record;
    head text;
    part record;
begin
    for kept in
        select i.index_id, i.index_name, pg_get_indexdef(i.index_id) as definition, x.indisunique, s.spcname
        from pgtrickle_internal.own_indexes(old) i join pg_index x on x.indexrelid = i.index_id
        join pg_class c on c.oid = i.index_id left join pg_tablespace s on s.oid = c.reltablespace
        where i.constraint_id is null
            and pgtrickle_internal.lost_column(old, 'pg_class'::regclass, i.index_id, columns) is null
    loop
        head := format('CREATE %sINDEX %I ON %s USING ', case when kept.indisunique then 'UNIQUE ' end, kept.index_name,
            pgtrickle_internal.printed(old));
        begin
            if not starts_with(kept.definition, head) then
                raise exception '%', kept.definition;
            end if;
            execute format('create %sindex pgtrickle_part_%s on %s using ', case when kept.indisunique then 'unique ' end,
                kept.index_id, printed) || substr(kept.definition, length(head) + 1);
        exception when unique_violation then
            raise;
        when others then
            raise exception '%', format('index %I cannot be created again: %s', kept.index_name, sqlerrm) using
                errcode = 'feature_not_supported', hint = format('Drop it: drop index %s.', pgtrickle_internal.printed(kept.index_id));
        end;
        if kept.spcname is not null then
            execute format('alter index %s set tablespace %I', pgtrickle_internal.part_name(replacement, kept.index_id), kept.spcname);
        end if;
        for part in select a.attnum, a.attstattarget from pg_attribute a where a.attrelid = kept.index_id and a.attstattarget >= 0 loop
            execute format('alter index %s alter column %s set statistics %s',
                pgtrickle_internal.part_name(replacement, kept.index_id), part.attnum, part.attstattarget);
        end loop;
    end loop;
    for kept in
        select k.oid, pg_get_constraintdef(k.oid) as definition from pg_constraint k
        where k.conrelid = old and k.contype in ('c', 'f', 'p', 'u', 'x')
            and pgtrickle_internal.lost_column(old, 'pg_constraint'::regclass, k.oid, columns) is null
        order by k.oid
    loop
        execute format('alter table %s add constraint pgtrickle_part_%s ', printed, kept.oid) || kept.definition;
    end loop;
end
$$;

-- part_name: the index that replaces another one, as written in SQL.
create or replace function pgtrickle_internal.part_name(replacement oid, part oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('%I.%I', n.nspname, format('pgtrickle_part_%s', part))
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = replacement
$$;

-- lock_soon: lock a relation against everybody else until the transaction ends. Later readers queue behind
-- a lock that is waited for, so each attempt waits for a moment only; all of them take at most a minute, or as long as
-- lock_timeout says.
create or replace function pgtrickle_internal.lock_soon(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    patience text := current_setting('lock_timeout');
    deadline timestamptz := clock_timestamp()
        + case patience::interval when interval '0' then interval '1 min' else patience::interval end;
begin
    loop
        begin
            perform set_config('lock_timeout', '50ms', true);
            -- this works on tables and materialized views, and changes nothing
            execute format('alter table %s owner to %I', pgtrickle_internal.printed(relation_id),
                (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = relation_id));
            perform set_config('lock_timeout', patience, true);
            return;
        exception when lock_not_available then
            perform set_config('lock_timeout', patience, true);
            if clock_timestamp() > deadline then
                raise exception '%', format('%s is in use by another session', pgtrickle_internal.printed(relation_id)) using
                    errcode = 'lock_not_available',
                    hint = 'Try again when the transactions that read it have ended. pg_stat_activity shows them.';
            end if;
        end;
        perform pg_sleep(0.1);
    end loop;
end
$$;

-- put_in_place: give the replacement the name of the old relation, its views, its grants, and what `parts` say. From here
-- on readers wait, so everything that takes time is done before. The old relation gets a name that nobody uses.
create or replace function pgtrickle_internal.put_in_place(old oid, replacement oid, parts text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    old_name name := (select c.relname from pg_class c where c.oid = old);
    aside name := format('pgtrickle_%s', replace(gen_random_uuid()::text, '-', ''));
    texts text[];
    views oid[];
    meanings text[];
    part text;
    number integer;
begin
    perform pgtrickle_internal.lock_soon(old);
    -- views can be created until now
    select coalesce(array_agg(v.view_id order by v.view_id), '{}'),
        coalesce(array_agg(format('create or replace view %s', pgtrickle_internal.printed(v.view_id))
            || coalesce((select ' with (' || string_agg(format('%I = %L', o.option_name, o.option_value), ', ') || ')'
                from pg_options_to_table(c.reloptions) o), '')
            || format(E' as\n%s', pg_get_viewdef(v.view_id)) order by v.view_id), '{}'),
        coalesce(array_agg(array_to_string(pgtrickle_internal.unprinted(v.view_id), ' ') order by v.view_id), '{}')
    into views, texts, meanings
    from pgtrickle_internal.reading_views(old) v join pg_class c on c.oid = v.view_id;
    execute format('alter table %s rename to %I', pgtrickle_internal.printed(old), aside);
    execute format('alter table %s rename to %I', pgtrickle_internal.printed(replacement), old_name);
    for number in 1 .. cardinality(views) loop
        if pgtrickle_internal.view_code(views[number]) is not null then
            raise exception '%', format('view %s cannot be kept: it would run with your rights: %s',
                    pgtrickle_internal.printed(views[number]), pgtrickle_internal.view_code(views[number])) using
                errcode = 'dependent_objects_still_exist', hint = 'Drop the view, then try again.';
        end if;
        begin
            execute texts[number];
        exception when others then
            raise exception '%', format('view %s cannot be kept: %s', pgtrickle_internal.printed(views[number]), sqlerrm) using
                errcode = 'dependent_objects_still_exist', hint = 'Drop the view, then try again.';
        end;
        if array_to_string(pgtrickle_internal.unprinted(views[number]), ' ') <> meanings[number] then
            raise exception '%', format('view %s cannot be kept: it means more than its text says', pgtrickle_internal.printed(views[number]))
            using errcode = 'dependent_objects_still_exist', hint = 'Drop the view, then try again.';
        end if;
    end loop;
    perform pgtrickle_internal.carry_grants(old, replacement);
    foreach part in array parts loop
        execute part;
    end loop;
end
$$;

-- finish_replacement: drop the old relation, and let the new one have the names that this sets free. Whatever still
-- depends on the old one, PostgreSQL refuses to drop it.
create or replace function pgtrickle_internal.finish_replacement(old oid, replacement oid, later text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    part text;
begin
    execute format('drop %s %s', case (select c.relkind from pg_class c where c.oid = old) when 'm' then 'materialized view'
        else 'table' end, pgtrickle_internal.printed(old));
    foreach part in array later loop
        execute part;
    end loop;
    perform pgtrickle_internal.rename_row_index(replacement);
end
$$;
