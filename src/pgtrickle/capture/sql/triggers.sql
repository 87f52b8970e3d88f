-- triggers: the triggers that call the capture function of a source.
-- Run as the sidecar's role, which needs TRIGGER on the source and on its children, nothing more.

-- trigger_level: statement triggers, except where they would miss changes: a partition or child does
-- not hear of statements addressed to its parent, and logical replication fires none at all.
create or replace function pgtrickle.trigger_level(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when exists (select from pg_inherits where inhrelid = source)
        or exists (select from pg_subscription_rel where srrelid in (select pgtrickle.tree_of(source)))
        then 'row' else 'statement' end
$$;

-- wanted_triggers: every trigger a source should have, and the one it has.
-- A row trigger of a partitioned table is handed down to its partitions by PostgreSQL.
create or replace function pgtrickle.wanted_triggers(source oid, trigger_level text)
returns table (relation_id oid, trigger_name name, event text, trigger_id oid, enabled "char")
language sql stable rows 4 set search_path = pg_catalog, pg_temp
as $$
    select t.id, w.name, e.event, g.oid, g.tgenabled
    from pgtrickle.tree_of(source) t(id)
    join pg_class c on c.oid = t.id
    cross join unnest(array['insert', 'update', 'delete', 'truncate']) e(event)
    cross join lateral (select format('pgtrickle_%s_%s', source, e.event)::name) w(name)
    left join pg_trigger g on g.tgrelid = t.id and g.tgname = w.name
    where trigger_level <> 'none'
        and (e.event = 'truncate' or trigger_level = 'statement' or not c.relispartition or t.id = source)
    order by t.id, e.event
$$;

-- create_trigger: one trigger; waits for writers under way, so what it captures is complete.
create or replace function pgtrickle.create_trigger(
    source oid, trigger_level text, relation_id oid, trigger_name name, event text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('create or replace trigger %I after %s on %s %s for each %s '
        'execute function pgtrickle_changes.capture_%s()',
        trigger_name, event, pgtrickle.printed(relation_id),
        case when trigger_level = 'row' or event = 'truncate' then ''
            when event = 'insert' then 'referencing new table as new_rows'
            when event = 'delete' then 'referencing old table as old_rows'
            else 'referencing old table as old_rows new table as new_rows' end,
        case when event = 'truncate' then 'statement' else trigger_level end,
        source);
end
$$;

-- enable_always: let the triggers of a source fire for replicated writes too, where the caller owns it.
-- Runs as the caller: only the owner of a table may do this.
create or replace function pgtrickle.enable_always(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    wanted record;
begin
    for wanted in
        select w.* from pgtrickle.pgt_sources s
        cross join lateral pgtrickle.wanted_triggers(source, s.trigger_level) w
        join pg_class c on c.oid = w.relation_id
        where s.source_relid = source and w.enabled = 'O' and pg_has_role(c.relowner, 'USAGE')
    loop
        execute format('alter table %s enable always trigger %I',
            pgtrickle.printed(wanted.relation_id), wanted.trigger_name);
    end loop;
end
$$;

-- capture_source: note all changes of these columns of a table from now on.
-- Locks: its row in pgt_sources; SHARE ROW EXCLUSIVE on the table where a trigger is made, for at most
-- two seconds of waiting (55P03 then), so that no application queues behind us for long.
create or replace function pgtrickle.capture_source(source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
declare
    level text := pgtrickle.trigger_level(source);
    captured pgtrickle.pgt_sources;
    patience text := current_setting('lock_timeout');
    has_new_shape boolean;
    is_other_level boolean;
begin
    -- the share lock keeps the capture from being released under us
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for key share;
    if found and numbers <@ captured.columns_captured and captured.trigger_level = level
        and captured.shape = pgtrickle.capture_shape(source, captured.columns_captured) and not exists (
        select from pgtrickle.wanted_triggers(source, level) w where w.trigger_id is null)
    then
        return;
    end if;
    if patience = '0' or patience::interval > interval '2s' then
        perform set_config('lock_timeout', '2s', true);
    end if;
    insert into pgtrickle.pgt_sources (source_relid, trigger_level) values (source, level)
    on conflict (source_relid) do nothing;
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for update;
    is_other_level := captured.trigger_level <> level;
    perform pgtrickle.refuse_differing_expressions(source, numbers);
    update pgtrickle.pgt_sources s set trigger_level = level, columns_captured = array(
        select n from (select unnest(numbers) union select unnest(s.columns_captured)) u(n) order by n)
    where s.source_relid = source returning * into captured;
    if is_other_level then
        execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
    end if;
    perform pgtrickle.create_buffers(source, captured.columns_captured);
    has_new_shape := is_other_level
        or captured.shape is distinct from pgtrickle.capture_shape(source, captured.columns_captured);
    perform pgtrickle.compose_capture(source);
    -- writers under way still run the old function: replacing every trigger waits for them to end
    perform pgtrickle.create_trigger(source, level, w.relation_id, w.trigger_name, w.event)
    from pgtrickle.wanted_triggers(source, level) w
    where has_new_shape or w.trigger_id is null;
    perform set_config('lock_timeout', patience, true);
    perform pgtrickle.enable_always(source);
    perform pgtrickle.note_always(source);
exception when lock_not_available then
    raise exception '%', format('table %s is busy', pgtrickle.printed(source)) using
        errcode = 'lock_not_available',
        hint = 'Another transaction writes to it. Try again when that has ended.';
end
$$;

-- note_always: store whether every trigger of a source fires for replicated writes.
create or replace function pgtrickle.note_always(source oid) returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_sources s set is_always = fires.always
    from (
        select bool_and(w.enabled is not distinct from 'A') as always
        from pgtrickle.pgt_sources s
        cross join lateral pgtrickle.wanted_triggers(source, s.trigger_level) w
        where s.source_relid = source
    ) fires
    where s.source_relid = source and s.is_always is distinct from fires.always
$$;

-- refuse_differing_expressions: a virtual column is captured by its expression, so a partition that
-- computes it differently cannot be followed.
create or replace function pgtrickle.refuse_differing_expressions(source oid, numbers smallint[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    differing record;
begin
    select pgtrickle.printed(child.attrelid) as child, own.attname into differing
    from pg_attribute own
    join pg_attrdef e on e.adrelid = own.attrelid and e.adnum = own.attnum
    join pgtrickle.tree_of(source) t(id) on t.id <> source
    join pg_attribute child on child.attrelid = t.id and child.attname = own.attname
    left join pg_attrdef f on f.adrelid = child.attrelid and f.adnum = child.attnum
    where own.attrelid = source and own.attnum = any (numbers) and own.attgenerated = 'v'
        and pg_get_expr(f.adbin, f.adrelid) is distinct from pg_get_expr(e.adbin, e.adrelid)
    limit 1;
    if found then
        raise exception '%', format('%s computes column %I otherwise than %s', differing.child,
                differing.attname, pgtrickle.printed(source)) using
            errcode = 'feature_not_supported',
            hint = 'Give the column the same expression in all partitions, or do not use it.';
    end if;
end
$$;

-- release_source: forget a source that nobody uses any more. Dropping the function takes the triggers
-- along, which only the owner of the table could drop one by one. False if the table is busy.
create or replace function pgtrickle.release_source(source oid) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
declare
    patience text := current_setting('lock_timeout');
begin
    perform from pgtrickle.pgt_sources s where s.source_relid = source for update skip locked;
    if not found or exists (select from pgtrickle.pgt_dependencies d
        where d.source_relid = source and d.source_type not in ('view', 'function'))
    then
        return false;
    end if;
    if patience = '0' or patience::interval > interval '1s' then
        perform set_config('lock_timeout', '1s', true);
    end if;
    execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
    execute format('drop table if exists pgtrickle_changes.changes_%s_0, pgtrickle_changes.changes_%s_1',
        source, source);
    execute format('drop table if exists %s', pgtrickle.copy_of(source));
    delete from pgtrickle.pgt_sources s where s.source_relid = source;
    perform set_config('lock_timeout', patience, true);
    return true;
exception when lock_not_available then
    return false;
end
$$;

-- repair_source: create the triggers a source lacks, and replace those that are switched off.
create or replace function pgtrickle.repair_source(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    level text := (select s.trigger_level from pgtrickle.pgt_sources s where s.source_relid = source);
begin
    perform pgtrickle.capture_source(source, '{}');
    perform set_config('lock_timeout', '2s', true);
    perform pgtrickle.create_trigger(source, level, w.relation_id, w.trigger_name, w.event)
    from pgtrickle.wanted_triggers(source, level) w
    where w.enabled = 'D';
    perform pgtrickle.enable_always(source);
    perform pgtrickle.note_always(source);
end
$$;
