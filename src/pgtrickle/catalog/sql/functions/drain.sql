-- drain: before a shutdown or an upgrade, all sidecars finish their refreshes and start no new ones, until
-- undrain. The state is stored, so it also applies to a sidecar that starts later. Changes are still captured.
--
-- Every refresh holds an advisory lock in share mode until its transaction ends. It gets the lock only if no
-- session holds it, or waits for it, exclusively. So drain, which takes it exclusively, is visible to all
-- sidecars before it commits, waits for exactly the running refreshes, and lets none overtake it.

create or replace function pgtrickle_internal.drain_lock() returns integer
language sql immutable as $$ select 1885828211 $$;

-- may_start: sidecars of version 0.1.0 call this before a refresh. They do not know this catalog, and would use it
-- as theirs. The error stops them before they write anything.
create or replace function pgtrickle_internal.may_start() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception 'this sidecar is older than the catalog of pgtrickle in this database' using
        errcode = 'TC010',
        hint = format('Stop it, and start one of version %s.', pgtrickle.version());
end
$$;

-- may_begin: whether a refresh may start in this transaction. Until the transaction ends, drain waits for it.
create or replace function pgtrickle_internal.may_begin() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if not pg_try_advisory_xact_lock_shared(pgtrickle_internal.drain_lock(), 0) then
        return false;
    end if;
    return not exists (select from pgtrickle.pgt_drain);
end
$$;

-- may_drain: whether the caller may act as the sidecar's role, or as the owner of the database.
create or replace function pgtrickle_internal.may_drain() returns boolean
language sql stable as $$
    select pgtrickle_internal.may_act_as(pgtrickle.sidecar_role()) or exists (
        select from pg_catalog.pg_database d where d.datname = pg_catalog.current_database()
            and pgtrickle_internal.may_act_as(d.datdba))
$$;

-- own_drain: the drain state, for roles that may change it. See own_requests for why this is a view.
create or replace view pgtrickle_internal.own_drain with (security_barrier) as
select d.is_draining, d.drained_by, d.is_drained, d.is_disabled from pgtrickle.pgt_drain d where pgtrickle_internal.may_drain()
with cascaded check option;

-- note_drain: record the role that drains; PostgreSQL provides it, so it cannot be forged.
create or replace function pgtrickle_internal.note_drain() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    new.drained_by := current_user;
    return new;
end
$$;
create or replace trigger note_drain before insert on pgtrickle.pgt_drain
    for each row execute function pgtrickle_internal.note_drain();

-- check_may_drain: refuse unless the caller may drain.
create or replace function pgtrickle_internal.check_may_drain() returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not pgtrickle_internal.may_drain() then
        raise exception 'you need the rights of the owner of the database, or of pgtrickle in it, to drain it' using
            errcode = 'insufficient_privilege',
            hint = format('Connect as %I.', pg_get_userbyid(pgtrickle.sidecar_role()));
    end if;
end
$$;

-- drain: stop new refreshes, and wait up to `timeout_s` seconds for running ones. Returns whether all have
-- ended. If not, the database keeps draining: call is_drained, or drain again. In a transaction it takes effect
-- with the call, and is undone on rollback.
create or replace function pgtrickle.drain(timeout_s integer default 60) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
    is_done boolean := true;
    limit_before text := current_setting('lock_timeout');
begin
    perform pgtrickle_internal.check_may_drain();
    if timeout_s is null or timeout_s not between 0 and 86400 then
        raise exception '%', format('timeout_s %s is not between 0 and 86400', coalesce(timeout_s::text, 'null'))
        using errcode = 'invalid_parameter_value', hint = 'Give the number of seconds to wait.';
    end if;
    begin
        -- zero would mean no limit
        perform set_config('lock_timeout', greatest(timeout_s * 1000, 1)::text, true);
        perform pg_advisory_xact_lock(pgtrickle_internal.drain_lock(), 0);
    exception when lock_not_available then
        is_done := false;
    end;
    perform set_config('lock_timeout', limit_before, true);
    insert into pgtrickle_internal.own_drain (is_drained, is_disabled) values (true, false) on conflict do nothing;
    update pgtrickle_internal.own_drain set is_drained = true where not is_drained;
    return is_done;
end
$$;
comment on function pgtrickle.drain(integer) is
    E'Start no more refreshes, and wait up to timeout_s seconds for running ones; returns whether all '
    'have ended. Call it with SELECT. You must be able to act as the owner of the database or of '
    'pgtrickle.\n'
    '\ntimeout_s: How many seconds to wait for running refreshes, from 0 to 86400.';

-- undrain: let refreshes start again. Safe to run again.
create or replace function pgtrickle.undrain() returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_drain();
    update pgtrickle_internal.own_drain set is_drained = false where is_disabled;
    delete from pgtrickle_internal.own_drain where not is_disabled;
end
$$;
comment on function pgtrickle.undrain() is
    'Let refreshes start again after drain. Call it with SELECT. You must be able to act as the owner of '
    'the database or of pgtrickle.';

-- set_enabled: whether sidecars serve this database. If not, they finish their refreshes and close their connections.
-- Changes are still captured, and are applied once the database is enabled again.
create or replace function pgtrickle.set_enabled(enabled boolean) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_drain();
    if enabled is null then
        raise exception 'enabled is null' using errcode = 'invalid_parameter_value', hint = 'Give true or false.';
    elsif enabled then
        update pgtrickle_internal.own_drain set is_disabled = false where is_drained;
        delete from pgtrickle_internal.own_drain where not is_drained;
    else
        insert into pgtrickle_internal.own_drain (is_drained, is_disabled) values (false, true) on conflict do nothing;
        update pgtrickle_internal.own_drain set is_disabled = true where not is_disabled;
    end if;
end
$$;
comment on function pgtrickle.set_enabled(boolean) is
    E'Let sidecars serve this database, or have them leave it alone: they finish their refreshes, close their '
    'connections, and only check now and then whether it is enabled again. Changes are still captured meanwhile. Call '
    'it with SELECT. You must be able to act as the owner of the database or of pgtrickle.\n'
    '\nenabled: Whether sidecars serve this database.';

-- is_enabled: whether sidecars serve this database.
create or replace function pgtrickle.is_enabled() returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select not exists (select from pgtrickle.pgt_drain d where d.is_disabled)
$$;
comment on function pgtrickle.is_enabled() is
    'Whether sidecars may serve this database; false after set_enabled(false). Call it with SELECT. Everyone may call it.';

-- is_draining: whether the database is drained, or a session is waiting in drain.
create or replace function pgtrickle_internal.is_draining() returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_drain)
        or exists (select from pgtrickle_internal.drain_locks() d where d.mode = 'ExclusiveLock')
$$;

-- is_drained: whether the database is drained and no refresh is running.
create or replace function pgtrickle.is_drained() returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_drain d where d.is_drained)
        and not exists (select from pgtrickle_internal.drain_locks() d where d.mode = 'ShareLock' and d.granted)
$$;
comment on function pgtrickle.is_drained() is
    'Whether the database is drained and no refresh is running. Call it with SELECT. Everyone may call '
    'it.';

create or replace function pgtrickle_internal.drain_locks() returns table (mode text, granted boolean)
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select l.mode, l.granted from pg_locks l
    where l.locktype = 'advisory' and l.classid = pgtrickle_internal.drain_lock()::oid and l.objid = 0 and l.objsubid = 2
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
$$;

-- waits_for: why a stream table is not refreshed, in words; null if nothing prevents it.
create or replace function pgtrickle.waits_for(id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(case when pgtrickle.is_copy()
            then 'this database is a copy, and nothing is refreshed until it is repaired' end,
        (select format('the database has been %s since %s by %I', case when d.is_disabled then 'disabled' else 'drained' end,
            to_char(d.drained_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), d.drained_by)
        from pgtrickle.pgt_drain d),
        -- mostly there are none, and this is cheaper than a call
        case when exists (select from pgtrickle.pgt_gates) then pgtrickle_internal.gate_before(id) end,
        case when exists (select from pgtrickle.pgt_waiting) then pgtrickle_internal.waits_for_triggers(id) end)
$$;
comment on function pgtrickle.waits_for(bigint) is
    E'Why the stream table with this pgt_id is not being refreshed, in words; null if nothing prevents '
    'it. Call it with SELECT. Everyone may call it.\n'
    '\nid: The pgt_id of the stream table, as pgtrickle.stream_tables_info shows it.';

-- check_waits_for_nothing: refuse a refresh that cannot start until someone acts.
create or replace function pgtrickle_internal.check_waits_for_nothing(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    -- triggers are created without any action
    if pgtrickle.waits_for(id) is not distinct from pgtrickle_internal.waits_for_triggers(id) then
        return;
    end if;
    if exists (select from pgtrickle.pgt_drain) then
        raise exception '%', format('%s cannot be refreshed now: %s',
                pgtrickle_internal.shown_name(id), pgtrickle.waits_for(id)) using
            errcode = 'TS007', hint = format('To let refreshes start again, run select pgtrickle.%s.',
                case when pgtrickle.is_enabled() then 'undrain()' else 'set_enabled(true)' end);
    end if;
    raise exception '%', format('%s cannot be refreshed now: %s',
            pgtrickle_internal.shown_name(id), pgtrickle.waits_for(id)) using
        errcode = 'TS006', hint = format('To let it be refreshed again, run select pgtrickle.ungate_source(%L).',
            split_part(pgtrickle_internal.gate_before(id), ' has been gated since ', 1));
end
$$;
