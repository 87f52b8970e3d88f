-- register: what a stream table needs beyond the rights of its creator: catalog rows, buffers, triggers.
-- Every role can call the SECURITY DEFINER functions, with any arguments. So they do not trust their arguments:
-- the query comes from a view that PostgreSQL parsed, every privilege is checked for the owner of the table, and
-- only that owner can have left the proof of ownership.

-- prove_ownership: prove that the caller owns a stream table, in a way that no other role can. Runs as the caller:
-- only the owner of a table may comment on its triggers.
create or replace function pgtrickle_internal.prove_ownership(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('comment on trigger pgtrickle_guard on %s is %L',
        pgtrickle_internal.printed(relation_id),
        format('last defined in transaction %s, proof %s', pg_current_xact_id(), gen_random_uuid()));
exception
    when insufficient_privilege then
        raise exception '%', format('you must own stream table %s to do that',
                pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = (select format('Its owner is %I.', pg_get_userbyid(relowner))
                from pg_class where oid = relation_id);
    when undefined_object then
        raise exception '%', format('stream table %s has lost its trigger pgtrickle_guard',
                pgtrickle_internal.printed(relation_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = format('To create it again, run select pgtrickle.repair_stream_table(%L).', pgtrickle_internal.printed(relation_id));
end
$$;

-- check_ownership: refuse unless the owner of the table has proved ownership in this transaction, for this call. A
-- proof can be used once: untrusted code that runs later in the same transaction must not benefit from it. It must
-- also have been written in this transaction: a former owner could have left one for a later transaction.
create or replace function pgtrickle_internal.check_ownership(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    proof text := (
        select d.description from pg_trigger t
        join pg_proc p on p.oid = t.tgfoid and p.pronamespace in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace)
            and p.proname = 'refuse_direct_write'
        join pg_description d on d.classoid = 'pg_trigger'::regclass and d.objoid = t.oid and d.objsubid = 0
        -- transaction ids are 32 bits long there, and wrap around
        where t.tgrelid = relation_id and t.tgname = 'pgtrickle_guard'
            and (d.xmin::text::bigint - pg_current_xact_id()::text::bigint) & 4294967295 < 2147483648);
begin
    perform pgtrickle_internal.check_not_copy();
    if proof is null or not starts_with(proof, format('last defined in transaction %s, ', pg_current_xact_id()))
        or exists (select from pgtrickle.pgt_stream_tables s
            where s.pgt_relid = relation_id and s.last_proof = proof)
    then
        raise exception '%', format('the owner of stream table %s did not start this', pgtrickle_internal.printed(relation_id))
        using errcode = 'insufficient_privilege',
            hint = 'This function is internal. Use pgtrickle.create_stream_table(name, query) and its relatives.';
    end if;
    update pgtrickle.pgt_stream_tables s set last_proof = proof where s.pgt_relid = relation_id;
end
$$;

-- columns_of: names and types of a relation's columns, in order.
create or replace function pgtrickle_internal.columns_of(relation_id oid) returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(format('%I %s', attname, format_type(atttypid, null)) order by attnum), '{}')
    from pg_attribute where attrelid = relation_id and attnum > 0 and not attisdropped
$$;

-- adopt_query: make the query of a view the query of a stream table. All checks are here.
create or replace function pgtrickle_internal.adopt_query(id bigint, query_view oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := (select s.pgt_relid from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    reader oid := (select relowner from pg_class where oid = relation_id);
    source record;
    intact bigint[];
begin
    if pgtrickle_internal.columns_of(query_view) <> pgtrickle_internal.columns_of(relation_id) then
        raise exception '%', format('the query does not have the columns of %s', pgtrickle_internal.printed(relation_id))
        using errcode = 'TP005',
            hint = 'Alter its query, with pgtrickle.alter_stream_table(name, query): the table then gets the columns of the query.';
    end if;
    perform pgtrickle_internal.check_query(query_view, reader);
    update pgtrickle.pgt_stream_tables s
    set defining_query = pgtrickle_internal.canonical_of(query_view), follows_clock = null
    where s.pgt_id = id;
    delete from pgtrickle.pgt_compiled p where p.pgt_id = id;
    delete from pgtrickle.pgt_dependencies d where d.pgt_id = id;
    perform pgtrickle_internal.record_dependencies(id, query_view, reader);
    perform pgtrickle_internal.note_rights(id, query_view);
    perform pgtrickle_internal.check_cycle(id);
    delete from pgtrickle.pgt_waiting w where w.pgt_id = adopt_query.id;
    for source in
        select d.source_relid as id, d.source_type in ('table', 'stream_table') as is_captured, array(
            select a.attnum from pg_attribute a
            where a.attrelid = d.source_relid and a.attname = any (d.columns_used) order by a.attnum) as numbers
        from pgtrickle.pgt_dependencies d
        where d.pgt_id = adopt_query.id and d.source_type not in ('view', 'function')
        -- always in the same order, to avoid deadlocks
        order by d.source_relid
    loop
        if source.is_captured then
            intact := pgtrickle_internal.intact_readers(source.id);
            perform pgtrickle_internal.capture_or_wait(id, source.id, source.numbers);
            perform pgtrickle_internal.note_own_triggers(source.id, intact, (
                select pg_has_role(reader, c.relowner, 'USAGE') from pg_class c where c.oid = source.id));
        else
            perform pgtrickle_internal.copy_source(source.id, source.numbers);
        end if;
    end loop;
    perform pgtrickle_internal.record_ground(id, query_view, reader);
    perform pgtrickle_internal.check_reading_functions(id);
    perform pgtrickle_internal.check_search_path(id);
    if exists (select from pgtrickle_internal.changed_dependencies(id)) then
        raise exception '%', format('a source of %s was altered in the meantime', pgtrickle_internal.printed(relation_id)) using
            errcode = 'lock_not_available', hint = 'Try again.';
    end if;
    perform pgtrickle_internal.raise_generation(id);
end
$$;

-- record_dependencies: one row for each table, view and function the query relies on.
create or replace function pgtrickle_internal.record_dependencies(id bigint, query_view oid, reader oid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    insert into pgtrickle.pgt_dependencies
        (pgt_id, source_type, source_relid, source_schema, source_name, columns_used, schema_fingerprint, cdc_mode)
    select record_dependencies.id, f.type, c.oid, n.nspname, c.relname,
        array(select a.attname::text from pg_attribute a
            where a.attrelid = c.oid and a.attnum = any (r.numbers) order by a.attnum),
        pgtrickle_internal.fingerprint(f.type, c.oid, r.numbers)::text,
        case when pgtrickle_internal.is_attached(c.oid) then 'attached'
            when c.relkind in ('m', 'f') then 'compare' when c.relkind <> 'v' then coalesce(
            (select s.capture from pgtrickle.pgt_sources s where s.source_relid = c.oid), 'trigger') end
    from (
        select relation_id, array_agg(distinct number) filter (where number is not null) as numbers
        from pgtrickle_internal.relations_of(query_view, reader) left join lateral unnest(columns) number on true
        group by relation_id
    ) r
    join pg_class c on c.oid = r.relation_id
    join pg_namespace n on n.oid = c.relnamespace
    cross join lateral (select case
        when c.relkind = 'v' then 'view'
        when pgtrickle_internal.is_attached(c.oid) then 'attached_table'
        when c.relkind = 'm' then 'materialized_view'
        when c.relkind = 'f' then 'foreign_table'
        when exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = c.oid) then 'stream_table'
        else 'table' end) f(type);
    insert into pgtrickle.pgt_dependencies
        (pgt_id, source_type, source_relid, source_schema, source_name, schema_fingerprint)
    select record_dependencies.id, 'function', p.oid, n.nspname, p.oid::regprocedure::text,
        pgtrickle_internal.fingerprint('function', p.oid, null)::text
    from pgtrickle_internal.functions_of(query_view, reader) f(called)
    join pg_proc p on p.oid = f.called
    join pg_namespace n on n.oid = p.pronamespace
    where p.oid >= 16384
$$;

-- check_cycle: refuse a stream table that would read itself, directly or through others.
create or replace function pgtrickle_internal.check_cycle(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        with recursive upstream(pgt_id) as (
            select s.pgt_id from pgtrickle.pgt_dependencies d
            join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
            where d.pgt_id = id
            union
            select s.pgt_id from upstream u
            join pgtrickle.pgt_dependencies d on d.pgt_id = u.pgt_id
            join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
        )
        select from upstream u where u.pgt_id = id)
    then
        raise exception '%', format('stream table %s would read itself',
                (select pgtrickle_internal.printed(s.pgt_relid) from pgtrickle.pgt_stream_tables s where s.pgt_id = id)) using
            errcode = 'invalid_recursion',
            hint = 'Change the query so that it no longer reads a stream table that reads this one.';
    end if;
end
$$;

-- check_view: refuse a view that the owner of the table did not create in this session.
create or replace function pgtrickle_internal.check_view(query_view oid, relation_id oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from pg_class v join pg_class t on t.oid = relation_id
        where v.oid = query_view and v.relkind = 'v' and v.relnamespace = pg_my_temp_schema()
            and v.relowner = t.relowner and t.relkind = 'r' and t.relpersistence = 'p' and not t.relispartition)
    then
        raise exception 'the view is not the query of that table' using errcode = 'insufficient_privilege',
            hint = 'This function is internal. Use pgtrickle.create_stream_table(name, query) and its relatives.';
    end if;
end
$$;

-- register: record a new, empty table as a stream table. The sidecar derives from the view what it will execute.
-- `path` is the search_path of the caller; it only decides which functions are refused.
create or replace function pgtrickle_internal.register(query_view oid, relation_id oid, options jsonb, path name[])
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    perform pgtrickle_internal.check_view(query_view, relation_id);
    if pg_relation_size(relation_id) > 0 then
        raise exception '%', format('table %s is not empty', pgtrickle_internal.printed(relation_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = 'Let pgtrickle.create_stream_table create the table.';
    end if;
    return pgtrickle_internal.record_table(query_view, relation_id, options, path);
end
$$;

-- record_table: write the catalog row of a new stream table, and adopt its query.
create or replace function pgtrickle_internal.record_table(query_view oid, relation_id oid, options jsonb, path name[])
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    id bigint;
begin
    perform pgtrickle_internal.settle_identity();
    insert into pgtrickle.pgt_stream_tables
        (pgt_relid, pgt_schema, pgt_name, pgt_owner, defining_query, refresh_mode, settings, match_columns, author_path)
    select c.oid, n.nspname, c.relname, c.relowner, '', 'AUTO', pgtrickle_internal.session_settings(),
        pgtrickle_internal.match_columns(c.oid), coalesce(path, '{}')
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation_id
    returning pgt_id into id;
    perform pgtrickle_internal.store_options(id, options);
    perform pgtrickle_internal.adopt_query(id, query_view);
    perform pgtrickle_internal.refuse_wal(id);
    return id;
end
$$;

-- store_options: store options; null leaves an option unchanged.
create or replace function pgtrickle_internal.store_options(id bigint, options jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    o pgtrickle.pgt_stream_tables;
begin
    -- check again: the caller may have skipped the checks
    options := pgtrickle_internal.options(options ->> 'schedule', options ->> 'refresh_mode',
        (options ->> 'initialize')::boolean, options ->> 'diamond_consistency',
        options ->> 'diamond_schedule_policy', options ->> 'cdc_mode', (options ->> 'append_only')::boolean,
        (options ->> 'pooler_compatibility_mode')::boolean, options ->> 'refresh_tier',
        options ->> 'refresh_timeout', options ->> 'on_divergence', options ->> 'keep_changes',
        options ->> 'auxiliary_results')
        || case when options ? 'schedule' then '{}' else '{"schedule": null}'::jsonb end;
    o := jsonb_populate_record(null::pgtrickle.pgt_stream_tables, options);
    if exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = id and s.auxiliary_results <> o.auxiliary_results)
    then
        perform pgtrickle_internal.drop_auxiliaries(id);
        -- one that was never loaded has nothing to load again
        update pgtrickle.pgt_stream_tables s set needs_reinit = true,
            reinit_reason = coalesce(s.reinit_reason, 'auxiliary_results was changed')
        where s.pgt_id = id and s.is_populated;
    end if;
    update pgtrickle.pgt_stream_tables s set
        schedule = case coalesce(o.schedule, s.schedule, 'manual') when 'manual' then null
            else coalesce(o.schedule, s.schedule) end,
        refresh_mode = coalesce(o.refresh_mode, s.refresh_mode),
        initialize = coalesce(o.initialize, s.initialize),
        diamond_consistency = coalesce(o.diamond_consistency, s.diamond_consistency),
        diamond_schedule_policy = nullif(coalesce(o.diamond_schedule_policy, s.diamond_schedule_policy), 'default'),
        cdc_mode = coalesce(o.cdc_mode, s.cdc_mode),
        append_only = coalesce(o.append_only, s.append_only),
        pooler_compatibility_mode = coalesce(o.pooler_compatibility_mode, s.pooler_compatibility_mode),
        refresh_tier = coalesce(o.refresh_tier, s.refresh_tier),
        refresh_timeout = nullif(coalesce(o.refresh_timeout, s.refresh_timeout), -1),
        on_divergence = coalesce(o.on_divergence, s.on_divergence),
        keep_changes = nullif(coalesce(o.keep_changes, s.keep_changes), 'off'),
        auxiliary_results = coalesce(o.auxiliary_results, s.auxiliary_results)
    where s.pgt_id = id;
    perform pgtrickle_internal.fit_feed(id);
    if o.cdc_mode = 'wal' then
        perform pgtrickle_internal.refuse_wal(id);
    end if;
    if o.pooler_compatibility_mode then
        perform pgtrickle_internal.check_not_subscribed(id);
    end if;
end
$$;
