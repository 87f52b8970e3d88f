-- repair: in a copy, bind everything by name again; in an original database, repair what is broken.

-- unbound_oid: an OID that no relation has, for objects that are not bound; a different one for each number.
create or replace function pgtrickle_internal.unbound_oid(number bigint) returns oid
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select (4294967295 - number)::oid $$;

-- repair: bind a copy again, or repair what is broken. Returns sentences that say what was done. Safe to run again.
-- It acts as the sidecar's role, so the caller must be a member of it. The last part runs as the caller: only the
-- owner of a table may let its triggers fire for replicated writes.
create or replace function pgtrickle.repair() returns setof text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    owner name := pg_get_userbyid(pgtrickle.sidecar_role());
    role_before text := current_setting('role');
    source record;
    replicated text[];
    silent text;
begin
    if not pg_has_role(owner, 'MEMBER') then
        raise exception '%', format('you need the rights of %I to repair a whole database', owner) using
            errcode = 'insufficient_privilege',
            hint = format('Connect as %I, or repair one of your own: select pgtrickle.repair_stream_table(name).', owner);
    end if;
    -- read this first, because binding changes it: which sources have triggers that fire for replicated writes
    replicated := array(select distinct format('%I.%I', d.source_schema, d.source_name)
        from pgtrickle.pgt_sources s join pgtrickle.pgt_dependencies d on d.source_relid = s.source_relid
        where s.is_always and d.source_type not in ('view', 'function'));
    perform set_config('role', owner, true);
    return query select r.sentence from pgtrickle_internal.repair_all() r(sentence);
    for source in
        select s.source_relid as id, pgtrickle_internal.intact_readers(s.source_relid) as readers from pgtrickle.pgt_sources s
        where s.trigger_level <> 'none' and not s.is_always order by 1
    loop
        perform set_config('role', role_before, true);
        perform pgtrickle_internal.enable_always(source.id);
        perform set_config('role', owner, true);
        perform pgtrickle_internal.note_always(source.id);
        perform pgtrickle_internal.note_own_triggers(source.id, source.readers, false);
    end loop;
    perform set_config('role', role_before, true);
    for silent in
        select pgtrickle_internal.printed(s.source_relid) from pgtrickle.pgt_sources s
        where not s.is_always and pgtrickle_internal.printed(s.source_relid) = any (replicated) order by 1
    loop
        return next format('Writes that logical replication brings to %s are not captured until its owner or an '
            'administrator runs pgtrickle.repair().', silent);
    end loop;
end
$$;
comment on function pgtrickle.repair() is
    'Bind a copied database to its own tables, or repair triggers, buffers and guards; returns what it '
    'did. Call it with SELECT * FROM. You must be a member of the role that owns pgtrickle.';

-- repair_all: the part of a repair that runs as the sidecar's role.
create or replace function pgtrickle_internal.repair_all() returns setof text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- not at the same time as an installation or another repair
    perform pg_advisory_xact_lock(hashtext('pgtrickle install'));
    if pgtrickle.is_copy() then
        return query select b.sentence from pgtrickle_internal.bind_copy() b(sentence);
    else
        return query select m.sentence from pgtrickle_internal.repair_broken() m(sentence);
        if not found then
            return next 'Nothing is broken.';
        end if;
    end if;
    if exists (select from pgtrickle.pgt_drain) then
        return next 'The database is drained: pgtrickle undrain lets refreshes start.';
    end if;
end
$$;

-- forget_original: remove everything that is only valid in the original database: buffers, triggers, transaction
-- ids, OIDs.
create or replace function pgtrickle_internal.forget_original(reason text) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
declare
    leftover text;
    relied_on pgtrickle.pgt_dependencies[];
begin
    for leftover in
        select format('function %s cascade', p.oid::regprocedure) from pg_proc p
        where p.pronamespace = 'pgtrickle_changes'::regnamespace and p.proname ~ '^capture_[0-9]+$'
        union all
        select format('table %s', pgtrickle_internal.printed(c.oid)) from pg_class c
        where c.relkind = 'r' and (c.relnamespace = 'pgtrickle_changes'::regnamespace
                and c.relname ~ '^(changes_[0-9]+_[01]|window_[0-9]+_[0-9]+)$'
            or c.relnamespace = 'pgtrickle_state'::regnamespace and c.relname ~ '^copy_of_[0-9]+$')
    loop
        execute 'drop ' || leftover;
    end loop;
    truncate pgtrickle_changes.touched_0, pgtrickle_changes.touched_1;
    perform pgtrickle_internal.forget_feeds();
    delete from pgtrickle.pgt_sources;
    -- the original goes on to follow its tables by the old name
    delete from pgtrickle.pgt_remote_readers;
    update pgtrickle.pgt_attached_databases set reader = gen_random_uuid(), place = null, position = null;
    update pgtrickle.pgt_attached_tables t set frontier = null, position = null, source_relid = case when t.is_stand_in then to_regclass(
        format('pgtrickle_attached.%I', pgtrickle_internal.stand_in_name(t.alias, t.origin_schema, t.origin_name)))::oid end;
    delete from pgtrickle.pgt_attached_tables t where not t.is_stand_in;
    delete from pgtrickle.pgt_wal;
    delete from pgtrickle.pgt_decoded;
    delete from pgtrickle.pgt_gates;
    delete from pgtrickle.pgt_generation;
    delete from pgtrickle.pgt_sidecars;
    delete from pgtrickle.pgt_last_sidecar;
    delete from pgtrickle.pgt_compiled;
    delete from pgtrickle.pgt_rights;
    delete from pgtrickle.pgt_ground;
    delete from pgtrickle.pgt_waiting;
    update pgtrickle.pgt_caches
    set installation = gen_random_uuid(), generation = generation + 1, cleared_at = clock_timestamp();
    update pgtrickle.pgt_refresh_requests r
    set answered_at = clock_timestamp(), error_message = 'the request was made in another database'
    where r.answered_at is null;
    -- keep the names: list_sources shows them
    relied_on := array(select d from pgtrickle.pgt_dependencies d);
    delete from pgtrickle.pgt_dependencies;
    insert into pgtrickle.pgt_dependencies (pgt_id, source_type, source_relid, source_schema, source_name,
        columns_used, schema_fingerprint, cdc_mode)
    select d.pgt_id, d.source_type, pgtrickle_internal.unbound_oid(1000000000 + row_number() over ()), d.source_schema,
        d.source_name, d.columns_used, d.schema_fingerprint, d.cdc_mode
    from unnest(relied_on) d;
    -- reload what was loaded, also if the stream table was created with initialize => false
    update pgtrickle.pgt_stream_tables s set
        pgt_relid = pgtrickle_internal.unbound_oid(s.pgt_id), pgt_owner = pgtrickle.sidecar_role(),
        status = case s.status when 'SUSPENDED' then s.status else 'INITIALIZING' end,
        initialize = s.initialize or s.is_populated, is_populated = false, frontier = null,
        upstream_frontier = null, consecutive_errors = 0, last_error = null, retry_at = null,
        needs_reinit = true, reinit_reason = forget_original.reason, behind_since = null, ground_error = null;
end
$$;

-- bind_copy: make this database an installation of its own: find every stream table and source by name.
create or replace function pgtrickle_internal.bind_copy() returns setof text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    reason constant text := 'the database is a copy';
    gates jsonb;
    gate record;
    id bigint;
begin
    perform from pgtrickle.pgt_stream_tables s order by s.pgt_id for update;
    gates := (select jsonb_agg(distinct jsonb_build_object('schema', d.source_schema, 'name', d.source_name,
            'gated_at', g.gated_at, 'gated_by', g.gated_by))
        from pgtrickle.pgt_gates g join pgtrickle.pgt_dependencies d on d.source_relid = g.source_relid
        where d.source_type not in ('view', 'function'));
    perform pgtrickle_internal.forget_original(reason);
    update pgtrickle.pgt_stream_tables s set pgt_relid = c.oid, pgt_owner = c.relowner
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = s.pgt_schema and c.relname = s.pgt_name and c.relkind = 'r' and pgtrickle_internal.is_guarded(c.oid);
    perform pgtrickle_internal.adopt_identity();
    return next format('This copy is now an installation of its own. Stream tables: %s.',
        (select count(*) from pgtrickle.pgt_stream_tables));
    for id in select s.pgt_id from pgtrickle.pgt_stream_tables s order by 1 loop
        if pgtrickle_internal.bound_relation(id) is null then
            return next pgtrickle_internal.mark_unbound(id);
        else
            return next pgtrickle_internal.bind_sources(id, reason);
        end if;
    end loop;
    for gate in
        select distinct on (d.source_relid) d.source_relid, g.gated_at, g.gated_by
        from jsonb_to_recordset(gates) as g(schema name, name text, gated_at timestamptz, gated_by name)
        join pgtrickle.pgt_dependencies d on (d.source_schema, d.source_name) = (g.schema, g.name)
            and d.source_type not in ('view', 'function')
        join pg_class c on c.oid = d.source_relid
        order by d.source_relid, g.gated_at
    loop
        insert into pgtrickle.pgt_gates (source_relid) values (gate.source_relid);
        -- the trigger names the role that inserts
        update pgtrickle.pgt_gates g set gated_at = gate.gated_at, gated_by = gate.gated_by
        where g.source_relid = gate.source_relid;
    end loop;
    perform pgtrickle_internal.raise_generation(null);
end
$$;

-- bind_sources: find the sources of a stream table by name, capture them, and mark the stream table for a reload.
-- An error in one stream table does not stop the repair of the others.
create or replace function pgtrickle_internal.bind_sources(id bigint, reason text) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.bound_relation(id);
    said text;
    advice text;
begin
    begin
        perform pgtrickle_internal.reanalyse(id, reason);
        update pgtrickle.pgt_stream_tables s set match_columns = pgtrickle_internal.match_columns(relation_id),
            status = case when s.status = 'SUSPENDED' and s.consecutive_errors = 0 then s.status
                when s.is_populated then 'ACTIVE' else 'INITIALIZING' end,
            consecutive_errors = 0, last_error = null, retry_at = null
        where s.pgt_id = id;
        perform pgtrickle_internal.emit_alert('reinitialize_needed', jsonb_build_object('pgt_id', id, 'reason', reason));
        return format('%s will be loaded again: %s.', pgtrickle_internal.printed(relation_id), reason);
    exception when others then
        get stacked diagnostics said = message_text, advice = pg_exception_hint;
    end;
    update pgtrickle.pgt_stream_tables s set status = 'ERROR', last_error = concat_ws('. ', said, nullif(advice, '')),
        needs_reinit = true, reinit_reason = reason, retry_at = null
    where s.pgt_id = id;
    return format('%s cannot be refreshed: %s', pgtrickle_internal.printed(relation_id), concat_ws('. ', said, nullif(advice, '')));
end
$$;

-- mark_unbound: mark a stream table whose table does not exist, or cannot be distinguished from another table of
-- that name.
create or replace function pgtrickle_internal.mark_unbound(id bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    name text := (select format('%I.%I', s.pgt_schema, s.pgt_name) from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    problem text := case when pgtrickle_internal.is_guarded(pgtrickle_internal.named_relation(id))
        then format('Table %s was dropped and created again. Bind it: select pgtrickle.repair_stream_table(%L).', name, name)
        when pgtrickle_internal.named_relation(id) is null
        then format('Table %s is not here. Create it again with pgtrickle.drop_stream_table and '
            'pgtrickle.create_stream_table.', name)
        else format('Table %s has no trigger pgtrickle_guard, so it may be another table. If it is the stream table, '
            'its owner binds it: select pgtrickle.repair_stream_table(%L).', name, name) end;
begin
    update pgtrickle.pgt_stream_tables s set status = 'ERROR', last_error = problem, retry_at = null
    where s.pgt_id = id and (s.status, s.last_error) is distinct from ('ERROR', problem);
    return problem;
end
$$;

-- repair_broken: repair what is broken in an original installation.
create or replace function pgtrickle_internal.repair_broken() returns setof text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    broken record;
    reason constant text := 'a repair was requested';
begin
    for broken in
        select s.pgt_id, pgtrickle_internal.bound_relation(s.pgt_id) as relation_id,
            pgtrickle_internal.named_relation(s.pgt_id) as named_id, c.lost_source
        from pgtrickle.pgt_stream_tables s
        left join lateral (
            select true where exists (
                select from pgtrickle_internal.changed_dependencies(s.pgt_id) d where d.present is null)
        ) c(lost_source) on true
        where pgtrickle_internal.bound_relation(s.pgt_id) is null or c.lost_source or s.status = 'ERROR'
            or s.consecutive_errors > 0 or not pgtrickle_internal.is_guarded(s.pgt_relid)
        order by 1
    loop
        -- a refresh may hold it for long, and other sessions must not wait for us in the meantime
        perform from pgtrickle.pgt_stream_tables s where s.pgt_id = broken.pgt_id for no key update skip locked;
        if not found then
            return next format('%s is being refreshed now. If that fails, run the repair again.',
                pgtrickle_internal.shown_name(broken.pgt_id));
        elsif broken.relation_id is null and pgtrickle_internal.is_guarded(broken.named_id)
            and not exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = broken.named_id)
        then
            perform pgtrickle_internal.bind_table(broken.pgt_id, broken.named_id);
            return next pgtrickle_internal.bind_sources(broken.pgt_id, 'its table was created again');
        elsif broken.relation_id is null then
            return next pgtrickle_internal.mark_unbound(broken.pgt_id);
        elsif broken.lost_source then
            return next pgtrickle_internal.bind_sources(broken.pgt_id, 'a source was created again');
        else
            return next pgtrickle_internal.bind_sources(broken.pgt_id, reason);
        end if;
    end loop;
    for broken in
        select distinct t.source_oid, t.source_table from pgtrickle.trigger_inventory() t
        where not t.is_present or not t.is_enabled order by 2
    loop
        perform pgtrickle_internal.repair_source(broken.source_oid);
        update pgtrickle.pgt_stream_tables s
        set needs_reinit = true, reinit_reason = format('triggers of %s were missing or off', broken.source_table)
        where exists (select from pgtrickle.pgt_dependencies d where d.pgt_id = s.pgt_id
            and d.source_relid = broken.source_oid and d.source_type not in ('view', 'function'));
        return next format('Triggers of %s were missing or off; every stream table that reads it will be loaded again.', broken.source_table);
    end loop;
end
$$;

-- bind_table: bind a stream table to another table, whose rows are unknown. Runs as the sidecar's role.
create or replace function pgtrickle_internal.bind_table(id bigint, relation_id oid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_stream_tables s set
        pgt_relid = c.oid, pgt_schema = n.nspname, pgt_name = c.relname, pgt_owner = c.relowner,
        status = 'INITIALIZING', initialize = s.initialize or s.is_populated, is_populated = false,
        frontier = null, upstream_frontier = null, match_columns = pgtrickle_internal.match_columns(c.oid)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where s.pgt_id = id and c.oid = relation_id
$$;

-- repair_stream_table: bind a stream table and its sources by name again, and reload its rows once. Runs as the
-- caller, who must own the table. The load also creates missing triggers on its sources.
create or replace function pgtrickle.repair_stream_table(name text) returns text
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    relation_id oid;
begin
    perform pgtrickle_internal.check_not_copy();
    relation_id := coalesce(pgtrickle_internal.bound_relation(id), pgtrickle_internal.named_relation(id));
    if relation_id is null then
        relation_id := pgtrickle_internal.relation_of(id);
    end if;
    perform pgtrickle_internal.own_guard(relation_id);
    perform pgtrickle_internal.prove_ownership(relation_id);
    perform pgtrickle_internal.ask_for_repair(relation_id);
    perform pgtrickle_internal.enable_always_for(id);
    return pg_catalog.format('%s will be computed again; only the difference is written.', name);
end
$$;
comment on function pgtrickle.repair_stream_table(text) is
    E'Bind a stream table and its sources by name again, and reload its rows. Call it with SELECT. You '
    'must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';

-- own_guard: as the owner of a table, create the guard of a stream table and grant the sidecar its privileges.
create or replace function pgtrickle_internal.own_guard(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.restore_guard(relation_id);
    perform pgtrickle_internal.guard_always(relation_id);
    if pg_has_role((select c.relowner from pg_class c where c.oid = relation_id), 'USAGE') then
        execute format('grant select, insert, update, delete, trigger on %s to %I',
            pgtrickle_internal.printed(relation_id), pg_get_userbyid(pgtrickle.sidecar_role()));
    end if;
end
$$;

-- ask_for_repair: the part of repair_stream_table that needs more than the rights of the owner, who has proved
-- ownership.
create or replace function pgtrickle_internal.ask_for_repair(relation_id oid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    reason text := 'a repair was requested';
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id);
begin
    if id is null then
        -- a stream table that has lost its table, by its last name; check ownership afterwards, so that the proof is
        -- stored with it and can be used only once
        id := (select s.pgt_id from pgtrickle.pgt_stream_tables s
            where pgtrickle_internal.named_relation(s.pgt_id) = relation_id and pgtrickle_internal.bound_relation(s.pgt_id) is null);
        reason := 'its table was created again';
        perform pgtrickle_internal.bind_table(id, relation_id);
    end if;
    perform pgtrickle_internal.check_ownership(relation_id);
    if not exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = id and s.is_populated)
        or exists (select from pgtrickle_internal.changed_dependencies(id))
    then
        perform pgtrickle_internal.reanalyse(id, reason);
    end if;
    update pgtrickle.pgt_stream_tables s set
        status = case when s.is_populated then 'ACTIVE' else 'INITIALIZING' end,
        consecutive_errors = 0, retry_at = null, last_error = null, needs_reinit = true, reinit_reason = reason
    where s.pgt_id = id;
    -- somebody may have changed the rows, so their difference is not that of the feed
    update pgtrickle.pgt_feeds f set reset_reason = reason where f.pgt_id = id;
    perform pgtrickle_internal.emit_alert('reinitialize_needed', jsonb_build_object('pgt_id', id, 'reason', reason));
end
$$;

-- note_repair: record that a stream table did not hold the correct rows, and mark it for a reload, unless its
-- owner wants it to stop. `problems` quotes rows; `reason` is visible to every role. Returns the number of the
-- repair.
create or replace function pgtrickle_internal.note_repair(id bigint, cause text, reason text, found_by text, problems text[])
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    number bigint;
    repairs_itself boolean := exists (
        select from pgtrickle.pgt_stream_tables s where s.pgt_id = id and s.on_divergence = 'repair');
begin
    insert into pgtrickle.pgt_repairs (pgt_id, cause, reason, found_by, problems)
    values (id, cause, reason, found_by, problems) returning repair_id into number;
    update pgtrickle.pgt_stream_tables s set
        repairs = s.repairs + 1, last_repair_at = clock_timestamp(), needs_reinit = true, reinit_reason = note_repair.reason
    where s.pgt_id = id and repairs_itself;
    update pgtrickle.pgt_feeds f set reset_reason = note_repair.reason where f.pgt_id = id;
    perform pgtrickle_internal.emit_alert(case when repairs_itself then 'self_repair' else 'diverged' end,
        jsonb_build_object('pgt_id', id, 'repair_id', number, 'cause', cause, 'reason', reason));
    return number;
end
$$;

-- visible_repairs: every repair. Only roles that may act as the owner see the rows that differed.
create or replace view pgtrickle.visible_repairs with (security_barrier) as
select r.repair_id, r.pgt_id, s.pgt_schema, s.pgt_name, r.cause, r.found_at, r.found_by, r.reason, r.repaired_at,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then r.problems end as problems,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then r.unexpected end as unexpected,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then r.missing end as missing
from pgtrickle.pgt_repairs r join pgtrickle.pgt_stream_tables s on s.pgt_id = r.pgt_id
left join pg_catalog.pg_class c on c.oid = s.pgt_relid
cross join lateral (
    select case when not (select pgtrickle.is_copy()) then coalesce(c.relowner, s.pgt_owner) end) o(owner_id);
comment on view pgtrickle.visible_repairs is
    'The repairs of all stream tables. Everyone may read it; the rows that differed are shown only to the '
    'owner of the stream table and to the role that owns pgtrickle.';
comment on column pgtrickle.visible_repairs.repair_id is 'A number that grows with each repair.';
comment on column pgtrickle.visible_repairs.pgt_id is 'The stream table, as in stream_tables_info.';
comment on column pgtrickle.visible_repairs.pgt_schema is 'Its schema.';
comment on column pgtrickle.visible_repairs.pgt_name is 'Its name.';
comment on column pgtrickle.visible_repairs.cause is
    'diverged (found by a refresh) or verified (found by verify).';
comment on column pgtrickle.visible_repairs.found_at is 'When the difference was found.';
comment on column pgtrickle.visible_repairs.found_by is 'What found it.';
comment on column pgtrickle.visible_repairs.reason is 'What was wrong, in words.';
comment on column pgtrickle.visible_repairs.repaired_at is
    'When the table was loaded again; null if that has not happened yet.';
comment on column pgtrickle.visible_repairs.problems is
    'What was found, such as rows that should have been there.';
comment on column pgtrickle.visible_repairs.unexpected is
    'Rows of the table that its query does not return, at most ten.';
comment on column pgtrickle.visible_repairs.missing is
    'Rows of the query that the table did not hold, at most ten.';

-- repairs: the repairs of a stream table, newest first.
create or replace function pgtrickle.repairs(name text) returns table (
    repair_id bigint, cause text, found_at timestamptz, found_by text, reason text, repaired_at timestamptz,
    problems text[], unexpected text[], missing text[])
language sql stable
as $$
    select v.repair_id, v.cause, v.found_at, v.found_by, v.reason, v.repaired_at, v.problems, v.unexpected, v.missing
    from pgtrickle.visible_repairs v where v.pgt_id = pgtrickle_internal.stream_table(name)
    order by v.repair_id desc
$$;
comment on function pgtrickle.repairs(text) is
    E'List the repairs of a stream table, newest first. Call it with SELECT ... FROM. Everyone may call '
    'it; only the owner of the stream table sees the rows that differed.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nrepair_id: A number that grows with each repair.'
    '\ncause: diverged (found by a refresh) or verified (found by verify).'
    '\nfound_at: When the difference was found.'
    '\nfound_by: What found it.'
    '\nreason: What was wrong, in words.'
    '\nrepaired_at: When the table was loaded again; null if that has not happened yet.'
    '\nproblems: What was found, such as rows that should have been there.'
    '\nunexpected: Rows of the table that its query does not return, at most ten.'
    '\nmissing: Rows of the query that the table did not hold, at most ten.';
