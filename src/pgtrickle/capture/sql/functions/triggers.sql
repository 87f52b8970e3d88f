-- triggers: the triggers that call the capture function of a source.
-- Run as the sidecar's role, which needs TRIGGER on the source and on its children, nothing more.

-- trigger_level: statement triggers, unless they would miss changes: statements on a parent that is not part of
-- the source change rows of a partition or child, and logical replication fires no statement triggers. Row
-- triggers are always correct, so they are used where we lack the privilege to check.
create or replace function pgtrickle_internal.trigger_level(source oid) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    tree oid[] := array(select pgtrickle_internal.tree_of(source));
begin
    if exists (select from pg_inherits i where i.inhrelid = any (tree) and i.inhparent <> all (tree)) then
        return 'row';
    end if;
    return case when pgtrickle_internal.is_replicated(source) is false then 'statement' else 'row' end;
end
$$;

-- is_replicated: whether a source, or a part of it, receives rows from a subscription; null if we lack the
-- privilege to check.
create or replace function pgtrickle_internal.is_replicated(source oid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not has_table_privilege('pg_subscription_rel', 'SELECT') then
        return null;
    end if;
    return exists (select from pg_subscription_rel where srrelid in (select pgtrickle_internal.tree_of(source)));
end
$$;

-- wanted_triggers: every trigger that a source should have, and the existing one if it is correct. PostgreSQL
-- clones a row trigger of a partitioned table to its partitions.
drop function if exists pgtrickle_internal.wanted_triggers(oid, text);
create or replace function pgtrickle_internal.wanted_triggers(source oid, trigger_level text)
returns table (relation_id oid, trigger_name name, event text, trigger_id oid, enabled "char", is_clone boolean)
language sql stable rows 4 set search_path = pg_catalog, pg_temp
as $$
    select t.id, w.name, e.event, g.oid, g.tgenabled, w.is_clone
    from pgtrickle_internal.tree_of(source) t(id)
    join pg_class c on c.oid = t.id
    cross join (values ('insert', 4), ('update', 16), ('delete', 8), ('truncate', 32)) e(event, bit)
    cross join lateral (
        select format('pgtrickle_%s_%s', source, e.event)::name, trigger_level = 'row' and e.event <> 'truncate'
    ) v(name, is_by_row)
    cross join lateral (select v.name, v.is_by_row and c.relispartition and t.id <> source) w(name, is_clone)
    left join pg_trigger g on g.tgrelid = t.id and g.tgname = w.name and g.tgqual is null
        and g.tgtype = e.bit + case when v.is_by_row then 1 else 0 end and cardinality(g.tgattr::smallint[]) = 0
        and g.tgfoid = (select p.oid from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where n.nspname = 'pgtrickle_changes' and p.proname = format('capture_%s', source))
    where trigger_level <> 'none' and not pgtrickle_internal.is_decoded(source)
    order by t.id, e.event
$$;

-- capture_gap: what is wrong with the capture of a source, in words; null if it is correct.
create or replace function pgtrickle_internal.capture_gap(source oid) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    captured pgtrickle.pgt_sources;
    level text;
    buffer text;
    absent record;
    is_decoded boolean;
    gap text;
begin
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source;
    if not found then
        return 'its changes are not captured';
    elsif captured.trigger_level = 'none' or not exists (select from pg_class c where c.oid = source) then
        return null;
    end if;
    if pgtrickle_internal.lacks_parts() then
        return 'something that all triggers of pgtrickle use was removed';
    end if;
    is_decoded := captured.capture = 'wal' and captured.wal_until is null;
    if captured.capture = 'wal' then
        gap := pgtrickle_internal.wal_gap(source);
        if gap is not null then
            return gap;
        end if;
    end if;
    level := pgtrickle_internal.trigger_level(source);
    if captured.trigger_level <> level and not is_decoded then
        return format('statements of others may change the rows of %s, or no longer can', pgtrickle_internal.printed(source));
    end if;
    foreach buffer in array array[format('pgtrickle_changes.changes_%s_0', source),
        format('pgtrickle_changes.changes_%s_1', source)]
    loop
        if not pgtrickle_internal.is_buffer(buffer) then
            return format('the change buffer %s was dropped, or may not be used', buffer);
        elsif exists (select from pgtrickle_internal.buffer_alterations(source, buffer, captured.columns_captured)) then
            return format('the change buffer %s does not have the columns of %s', buffer, pgtrickle_internal.printed(source));
        end if;
    end loop;
    if not is_decoded and not exists (
        select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname = 'pgtrickle_changes' and p.proname = format('capture_%s', source) and p.prosecdef
            and p.proowner = pgtrickle.sidecar_role() and md5(p.prosrc) = captured.body)
        or captured.parts is distinct from pgtrickle_internal.capture_parts(source)
    then
        return format('the trigger function of %s is not what it should be', pgtrickle_internal.printed(source));
    end if;
    select pgtrickle_internal.printed(w.relation_id) as relation, w.trigger_name, w.enabled into absent
    from pgtrickle_internal.wanted_triggers(source, level) w
    where w.trigger_id is null or w.enabled = 'D' order by w.is_clone, w.enabled limit 1;
    if found then
        return format('trigger %I of %s was %s', absent.trigger_name, absent.relation,
            case absent.enabled when 'D' then 'off' else 'missing' end);
    end if;
    return pgtrickle_internal.unreplicated(source);
end
$$;

-- capture_gaps: every source whose capture is wrong, with the reason. Checks closely only what looks suspicious:
-- there may be thousands of sources, and this runs all the time.
create or replace function pgtrickle_internal.capture_gaps() returns table (source oid, gap text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with common as materialized (
        select n.oid as schema_id, pgtrickle_internal.lacks_parts() as lacks_parts, pgtrickle_internal.state_function() as state_id,
            pgtrickle_internal.change_table('touched_0') as touched_0, pgtrickle_internal.change_table('touched_1') as touched_1,
            pgtrickle.sidecar_role() as sidecar
        from (select (select oid from pg_namespace where nspname = 'pgtrickle_changes')) n(oid)
    )
    select s.source_relid, g.gap
    from pgtrickle.pgt_sources s
    join pg_class c on c.oid = s.source_relid
    cross join common k
    left join pg_proc p on p.pronamespace = k.schema_id and p.proname = format('capture_%s', s.source_relid)
    left join pg_class b on b.relnamespace = k.schema_id and b.relname = format('changes_%s_0', s.source_relid)
    left join pg_class d on d.relnamespace = k.schema_id and d.relname = format('changes_%s_1', s.source_relid)
    cross join lateral (
        select case when k.lacks_parts or s.capture = 'wal' or p.proowner is distinct from k.sidecar
            or md5(p.prosrc) is distinct from s.body
            or s.parts is distinct from array[k.state_id, k.touched_0, k.touched_1, b.oid, d.oid]
                || pgtrickle_internal.sorted_tree(s.source_relid)
            or (select count(*) from pg_attribute m where m.attrelid in (b.oid, d.oid)
                and m.attname in ('xid', 'weight') and not m.attisdropped) <> 4
            or exists (select from pg_attribute a cross join (values (b.oid), (d.oid)) v(id)
                left join pg_attribute m on m.attrelid = v.id and m.attname = 'c' || a.attnum and not m.attisdropped
                where a.attrelid = s.source_relid and a.attnum = any (s.columns_captured) and not a.attisdropped
                    and m.atttypid is distinct from a.atttypid
                    and (m.atttypid is null or m.atttypid <> pgtrickle_internal.base_type(a.atttypid)))
            or (has_table_privilege(k.sidecar, b.oid, 'INSERT') and has_table_privilege(k.sidecar, d.oid, 'INSERT'))
                is not true
            or s.trigger_level <> pgtrickle_internal.trigger_level(s.source_relid)
            or exists (select from pgtrickle_internal.wanted_triggers(s.source_relid, s.trigger_level) w
                where w.trigger_id is null or w.enabled = 'D' or w.enabled not in ('A', 'R')
                    and pgtrickle_internal.is_replicated(s.source_relid) is not false)
            then pgtrickle_internal.capture_gap(s.source_relid) end
    ) g(gap)
    where s.trigger_level <> 'none' and g.gap is not null
$$;

-- unreplicated: a message if a source receives rows by logical replication and its triggers do not fire then. Only
-- the owner of the table can change that.
create or replace function pgtrickle_internal.unreplicated(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('triggers that do not fire for rows from a subscription; their owner has to run: %s',
        string_agg(format('alter table %s %s', pgtrickle_internal.printed(r.relation_id), r.parts), '; ' order by r.relation_id))
    from (
        select w.relation_id, string_agg(format('enable always trigger %I', w.trigger_name), ', ' order by w.event)
        from pgtrickle.pgt_sources s
        cross join lateral pgtrickle_internal.wanted_triggers(source, s.trigger_level) w
        where s.source_relid = source and w.enabled not in ('A', 'R') and pgtrickle_internal.is_replicated(source)
        group by w.relation_id
    ) r(relation_id, parts)
    having count(*) > 0
$$;

-- create_trigger: create one trigger. It waits for running writers, so what it captures is complete.
create or replace function pgtrickle_internal.create_trigger(
    source oid, trigger_level text, relation_id oid, trigger_name name, event text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('create or replace trigger %I after %s on %s %s for each %s '
        'execute function pgtrickle_changes.capture_%s()',
        trigger_name, event, pgtrickle_internal.printed(relation_id),
        case when trigger_level = 'row' or event = 'truncate' then ''
            when event = 'insert' then 'referencing new table as new_rows'
            when event = 'delete' then 'referencing old table as old_rows'
            else 'referencing old table as old_rows new table as new_rows' end,
        case when event = 'truncate' then 'statement' else trigger_level end,
        source);
end
$$;

-- wait_for_writers: wait for the writers of a table none of whose triggers was replaced. Without the privilege to
-- lock the table, the way to wait is to replace a trigger that never fires.
create or replace function pgtrickle_internal.wait_for_writers(source oid, trigger_level text, deadline timestamptz)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid;
begin
    for relation_id in
        select w.relation_id from pgtrickle_internal.wanted_triggers(source, trigger_level) w
        group by w.relation_id having bool_and(w.enabled is not distinct from 'A') order by 1
    loop
        if clock_timestamp() > deadline then
            raise lock_not_available;
        end if;
        execute format('create or replace trigger %I after truncate on %s for each statement when (false) '
            'execute function pgtrickle_changes.capture_%s()', format('pgtrickle_%s_wait', source),
            pgtrickle_internal.printed(relation_id), source);
    end loop;
end
$$;

-- enable_always: let the triggers of a source fire for replicated writes too, if the caller owns it. Runs as the
-- caller: only the owner of a table may do this. Waits for writers only for a moment: then the triggers stay
-- unchanged, and the owner of the table may do it later.
create or replace function pgtrickle_internal.enable_always(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    patience text := current_setting('lock_timeout');
    wanted record;
begin
    if patience = '0' or patience::interval > interval '50 ms' then
        perform set_config('lock_timeout', '50ms', true);
    end if;
    for wanted in
        select w.* from pgtrickle.pgt_sources s
        cross join lateral pgtrickle_internal.wanted_triggers(source, s.trigger_level) w
        join pg_class c on c.oid = w.relation_id
        where s.source_relid = source and w.enabled = 'O' and pg_has_role(c.relowner, 'USAGE')
    loop
        execute format('alter table %s enable always trigger %I',
            pgtrickle_internal.printed(wanted.relation_id), wanted.trigger_name);
    end loop;
    perform set_config('lock_timeout', patience, true);
exception when lock_not_available then
    raise notice '%', format('triggers on %s do not fire for replicated writes yet, because the table is busy',
        pgtrickle_internal.printed(source));
end
$$;

-- capture_source: capture all changes of these columns of a table from now on.
-- Locks: its row in pgt_sources; its buffers; SHARE ROW EXCLUSIVE on the table if a trigger is created, and
-- more if a table with partitions or children gets triggers of another level. Waits at most `patience` for each
-- lock, and not much longer for all (55P03 then), so that no application queues behind us for long.
drop function if exists pgtrickle_internal.capture_source(oid, smallint[]);
create or replace function pgtrickle_internal.capture_source(
    source oid, numbers smallint[], patience interval default interval '50 ms'
) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
declare
    level text := pgtrickle_internal.trigger_level(source);
    captured pgtrickle.pgt_sources;
    patience_before text := current_setting('lock_timeout');
    deadline timestamptz;
    has_new_shape boolean;
    is_other_level boolean;
    wanted record;
begin
    if pgtrickle_internal.lacks_parts() then
        perform pgtrickle_internal.create_parts();
    end if;
    -- the share lock keeps the capture from being released under us
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for key share;
    if found and numbers <@ captured.columns_captured
        and captured.shape = pgtrickle_internal.capture_shape(source, captured.columns_captured)
        and pgtrickle_internal.capture_gap(source) is not distinct from pgtrickle_internal.unreplicated(source)
        and not (captured.capture = 'wal' and exists (
            select from pgtrickle.pgt_remote_readers r where r.source_relid = source))
    then
        return;
    end if;
    if patience_before = '0' or patience_before::interval > patience then
        perform set_config('lock_timeout', (extract(epoch from patience) * 1000)::integer::text, true);
    end if;
    insert into pgtrickle.pgt_sources (source_relid, trigger_level) values (source, level)
    on conflict (source_relid) do nothing;
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for update;
    is_other_level := captured.trigger_level <> level;
    perform pgtrickle_internal.begin_leaving(source);
    perform pgtrickle_internal.refuse_differing_expressions(source, numbers);
    perform pgtrickle_internal.refuse_too_many(source, numbers);
    update pgtrickle.pgt_sources s set trigger_level = level, columns_captured = array(
        select n from (select unnest(numbers) union select unnest(s.columns_captured)) u(n)
        where exists (select from pg_attribute a where a.attrelid = source and a.attnum = n and not a.attisdropped)
        order by n)
    where s.source_relid = source returning * into captured;
    if is_other_level and (select count(*) from pgtrickle_internal.tree_of(source)) > 1 then
        -- a trigger that was cloned to a partition cannot be replaced there
        execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
    end if;
    perform pgtrickle_internal.create_buffers(source, captured.columns_captured);
    has_new_shape := is_other_level
        or captured.shape is distinct from pgtrickle_internal.capture_shape(source, captured.columns_captured);
    perform pgtrickle_internal.compose_capture(source);
    -- a tree of many tables may take longer in total, but not the full `patience` for each table
    deadline := clock_timestamp() + interval '500 ms' + patience + interval '20 ms' * (
        select count(*) from pgtrickle_internal.wanted_triggers(source, level));
    -- running writers still use the old function: replacing every trigger waits for them to end;
    -- replacing a disabled trigger enables it and its clones. A trigger that fires for
    -- replicated writes would no longer do so, and only the owner of the table could change that: it stays
    for wanted in
        select w.* from pgtrickle_internal.wanted_triggers(source, level) w
        where not w.is_clone and (has_new_shape and (is_other_level or w.enabled is distinct from 'A')
            or w.trigger_id is null or w.enabled = 'D' or exists (
            select from pgtrickle_internal.wanted_triggers(source, level) c
            where c.is_clone and c.event = w.event and (c.trigger_id is null or c.enabled = 'D')))
    loop
        if clock_timestamp() > deadline then
            raise lock_not_available;
        end if;
        perform pgtrickle_internal.create_trigger(source, level, wanted.relation_id, wanted.trigger_name, wanted.event);
    end loop;
    if has_new_shape then
        perform pgtrickle_internal.wait_for_writers(source, level, deadline);
    end if;
    perform pgtrickle_internal.end_leaving(source);
    perform pgtrickle_internal.enable_always(source);
    perform set_config('lock_timeout', patience_before, true);
    perform pgtrickle_internal.note_always(source);
exception when lock_not_available then
    raise exception '%', format('table %s is locked by another transaction', pgtrickle_internal.printed(source)) using
        errcode = 'lock_not_available',
        hint = 'Try again when that transaction has ended.';
end
$$;

-- note_always: store whether every trigger of a source fires for replicated writes. The log contains them anyway.
create or replace function pgtrickle_internal.note_always(source oid) returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_sources s set is_always = fires.always
    from (
        select coalesce(bool_and(w.enabled is not distinct from 'A'), true) as always
        from pgtrickle.pgt_sources s
        cross join lateral pgtrickle_internal.wanted_triggers(source, s.trigger_level) w
        where s.source_relid = source
    ) fires
    where s.source_relid = source and s.is_always is distinct from fires.always
$$;

-- refuse_differing_expressions: a virtual column is captured by its expression, so a partition that computes it
-- differently cannot be tracked.
create or replace function pgtrickle_internal.refuse_differing_expressions(source oid, numbers smallint[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    differing record;
begin
    select pgtrickle_internal.printed(child.attrelid) as child, own.attname into differing
    from pg_attribute own
    join pg_attrdef e on e.adrelid = own.attrelid and e.adnum = own.attnum
    join pgtrickle_internal.tree_of(source) t(id) on t.id <> source
    join pg_attribute child on child.attrelid = t.id and child.attname = own.attname
    left join pg_attrdef f on f.adrelid = child.attrelid and f.adnum = child.attnum
    where own.attrelid = source and own.attnum = any (numbers) and own.attgenerated = 'v'
        and pg_get_expr(f.adbin, f.adrelid) is distinct from pg_get_expr(e.adbin, e.adrelid)
    limit 1;
    if found then
        raise exception '%', format('%s computes column %I differently from %s', differing.child,
                differing.attname, pgtrickle_internal.printed(source)) using
            errcode = 'feature_not_supported',
            hint = 'Give the column the same expression in all partitions, or do not use it.';
    end if;
end
$$;

-- refuse_too_many: a buffer has two columns of its own, and PostgreSQL allows 1,600 in a table.
create or replace function pgtrickle_internal.refuse_too_many(source oid, numbers smallint[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(numbers) > 1598 then
        raise exception '%', format('the query uses %s columns of %s', cardinality(numbers),
                pgtrickle_internal.printed(source)) using
            errcode = 'too_many_columns', hint = 'Changes of at most 1,598 columns of a table can be captured.';
    end if;
end
$$;

-- release_source: stop capturing a source that no stream table reads. Dropping the function also drops its
-- triggers, which only the owner of the table could drop one by one. Returns false if the table is busy.
create or replace function pgtrickle_internal.release_source(source oid) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
declare
    patience text := current_setting('lock_timeout');
begin
    perform from pgtrickle.pgt_sources s where s.source_relid = source for update skip locked;
    if not found or exists (select from pgtrickle.pgt_dependencies d
        where d.source_relid = source and d.source_type not in ('view', 'function'))
        or exists (select from pgtrickle.pgt_remote_readers r where r.source_relid = source)
    then
        return false;
    end if;
    if patience = '0' or patience::interval > interval '1s' then
        perform set_config('lock_timeout', '1s', true);
    end if;
    execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
    execute format('drop table if exists pgtrickle_changes.changes_%s_0, pgtrickle_changes.changes_%s_1',
        source, source);
    execute format('drop table if exists %s', pgtrickle_internal.copy_of(source));
    perform pgtrickle_internal.drop_windows(source);
    delete from pgtrickle.pgt_sources s where s.source_relid = source;
    perform set_config('lock_timeout', patience, true);
    return true;
exception when lock_not_available then
    return false;
end
$$;
