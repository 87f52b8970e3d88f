-- waiting: sources that are too busy for triggers. Creating a trigger waits for every transaction that writes to
-- the table, and new writers queue behind us. So an attempt only waits for a moment. If that is not enough, the
-- stream table waits for its triggers and the sidecar retries. Run as the sidecar's role, unless stated otherwise.

-- who_blocks: the sessions that prevent a source, or its buffers, from being altered, in words.
create or replace function pgtrickle_internal.who_blocks(source oid) returns text
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    with blocking as (
        select distinct l.pid
        from pg_locks l
        where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
            and l.database = (select d.oid from pg_database d where d.datname = current_database())
            and ((l.relation in (select pgtrickle_internal.tree_of(source))
                    and l.mode not in ('AccessShareLock', 'RowShareLock'))
                or l.relation in (pgtrickle_internal.change_table(format('changes_%s_0', source)),
                    pgtrickle_internal.change_table(format('changes_%s_1', source))))
    ), described as (
        select b.pid, case when b.pid is null then 'a prepared transaction' else format('pid %s (%s)', b.pid,
            concat_ws(', ', case when a.usename is null then 'autovacuum or another server process'
                else 'role ' || a.usename end, nullif(a.application_name, ''),
                'in a transaction since ' || to_char(a.xact_start at time zone 'UTC', 'HH24:MI:SS "UTC"'))) end as who
        from blocking b left join pg_stat_activity a on a.pid = b.pid
        order by a.xact_start, b.pid limit 5
    )
    select coalesce((select string_agg(who, ', ') from described)
        || case when (select count(*) from blocking) > 5
            then format(' and %s more', (select count(*) from blocking) - 5) else '' end,
        'another session')
$$;

-- is_vacuumed: whether only autovacuum holds a source. It yields to a session that waits for longer than
-- deadlock_timeout, and to no other.
create or replace function pgtrickle_internal.is_vacuumed(source oid) returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(l.mode = 'ShareUpdateExclusiveLock' and a.usename is null), false)
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and l.relation in (select pgtrickle_internal.tree_of(source)) and l.mode not in ('AccessShareLock', 'RowShareLock')
$$;

-- try_capture: capture these columns of a source if its locks are available within a moment. Returns null on
-- success; otherwise nothing was changed, and the result names the blocking sessions.
create or replace function pgtrickle_internal.try_capture(source oid, numbers smallint[], patience interval) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.capture_source(source, numbers, patience);
    return null;
exception when lock_not_available then
    return pgtrickle_internal.who_blocks(source);
end
$$;

-- capture_or_wait: capture these columns of a source for a stream table, now or as soon as possible.
create or replace function pgtrickle_internal.capture_or_wait(id bigint, source oid, numbers smallint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    blockers text := pgtrickle_internal.try_capture(source, numbers, interval '50 ms');
begin
    delete from pgtrickle.pgt_waiting w where w.pgt_id = id and w.source_relid = source;
    if blockers is null then
        return;
    end if;
    insert into pgtrickle.pgt_waiting (pgt_id, source_relid, columns, blockers)
    values (id, source, numbers, blockers);
    raise notice '%', format('stream table %s is waiting for triggers on %s',
            (select pgtrickle_internal.printed(s.pgt_relid) from pgtrickle.pgt_stream_tables s where s.pgt_id = id),
            pgtrickle_internal.printed(source)) using
        detail = format('The table is in use by %s.', blockers),
        hint = 'The sidecar creates them as soon as no transaction uses the table, and then loads the rows.';
end
$$;

-- retry_pause: how long to wait after this many attempts, with some jitter.
create or replace function pgtrickle_internal.retry_pause(attempts integer) returns interval
language sql volatile set search_path = pg_catalog, pg_temp
as $$ select least(0.25 * 1.5 ^ least(attempts, 20), 5) * (0.75 + random() / 2) * interval '1 s' $$;

-- retry_capture: retry to capture a source for all stream tables that wait for it. Returns null if none has to
-- wait any longer, else the blocking sessions. Needs a separate transaction. Locks: the rows of the waiting stream
-- tables.
create or replace function pgtrickle_internal.retry_capture(source oid) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    ids bigint[];
    numbers smallint[];
    intact bigint[] := pgtrickle_internal.intact_readers(source);
    obstacle text;
begin
    select array_agg(w.pgt_id), coalesce(array_agg(distinct n) filter (where n is not null), '{}') into ids, numbers
    from (
        select * from pgtrickle.pgt_waiting w where w.source_relid = source order by w.pgt_id for update skip locked
    ) w left join lateral unnest(w.columns) n on true;
    if ids is null then
        return null;
    end if;
    if exists (select from pg_class c where c.oid = source) then
        begin
            obstacle := pgtrickle_internal.try_capture(source, numbers, case when pgtrickle_internal.is_vacuumed(source)
                then current_setting('deadlock_timeout')::interval + interval '100 ms' else interval '50 ms' end);
            obstacle := coalesce(obstacle, pgtrickle_internal.unreplicated(source));
            if obstacle is null then
                update pgtrickle.pgt_stream_tables s
                set needs_reinit = true, reinit_reason = coalesce(s.reinit_reason, w.reason)
                from pgtrickle.pgt_waiting w
                where w.pgt_id = s.pgt_id and w.source_relid = source and w.reason is not null
                    and s.pgt_id = any (ids);
                if exists (select from pgtrickle.pgt_waiting w where w.source_relid = source and w.reason is not null) then
                    perform pgtrickle_internal.mark_missed(source);
                end if;
                perform pgtrickle_internal.note_own_triggers(source, intact || ids, false);
            end if;
        exception when others then
            -- report it and retry: it may be temporary, such as a revoked privilege or a running refresh
            obstacle := sqlerrm;
        end;
    end if;
    if obstacle is null then
        -- if the source no longer exists, the refresh reports it
        delete from pgtrickle.pgt_waiting w where w.source_relid = source and w.pgt_id = any (ids);
        perform pgtrickle_internal.raise_generation(id) from unnest(ids) id;
    else
        update pgtrickle.pgt_waiting w
        set attempts = w.attempts + 1, blockers = obstacle,
            retry_at = clock_timestamp() + pgtrickle_internal.retry_pause(w.attempts)
        where w.source_relid = source and w.pgt_id = any (ids);
    end if;
    return obstacle;
end
$$;

-- waits_for_triggers: what a stream table waits for, in words; null if it has all of its triggers.
create or replace function pgtrickle_internal.waits_for_triggers(id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('it waits since %s for its triggers on %s, after %s attempts, because of %s',
        to_char(w.waiting_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
        coalesce(pgtrickle_internal.printed(w.source_relid), 'a dropped table'), w.attempts, w.blockers)
    from pgtrickle.pgt_waiting w where w.pgt_id = id order by w.waiting_since, w.source_relid limit 1
$$;

-- repair_source: repair the capture of a source: its triggers and their level, its buffers, its trigger function.
-- All its readers are recomputed, because changes may have been missed. Returns null if that was done, or nothing
-- was wrong; else the blocking sessions: then its readers wait, and the sidecar retries.
drop function if exists pgtrickle_internal.repair_source(oid);
create or replace function pgtrickle_internal.repair_source(source oid) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    gap text := pgtrickle_internal.capture_gap(source);
    obstacle text;
begin
    if gap is null then
        return null;
    end if;
    insert into pgtrickle.pgt_waiting (pgt_id, source_relid, reason, blockers)
    select d.pgt_id, source, gap, 'nothing yet' from pgtrickle.pgt_dependencies d
    where d.source_relid = source and d.source_type in ('table', 'stream_table')
    on conflict (pgt_id, source_relid) do update set reason = coalesce(pgt_waiting.reason, excluded.reason);
    if found then
        obstacle := pgtrickle_internal.retry_capture(source);
        perform pgtrickle_internal.raise_generation(w.pgt_id) from pgtrickle.pgt_waiting w where w.source_relid = source;
        return obstacle;
    end if;
    obstacle := pgtrickle_internal.try_capture(source, '{}', interval '50 ms');
    if obstacle is null then
        perform pgtrickle_internal.mark_missed(source);
    end if;
    return obstacle;
end
$$;

-- refit_capture: after an installation, adapt the capture of a source to this version. Buffers and trigger
-- functions of an earlier version are converted with the changes that they hold. What is missing is created again,
-- and then all readers of the source are recomputed. Locks: its buffers, if a column is altered.
create or replace function pgtrickle_internal.refit_capture(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    captured pgtrickle.pgt_sources;
begin
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source;
    if not exists (select from pg_class c where c.oid = source) then
        return;
    end if;
    if pgtrickle_internal.is_buffer(format('pgtrickle_changes.changes_%s_0', source))
        and pgtrickle_internal.is_buffer(format('pgtrickle_changes.changes_%s_1', source))
        and pgtrickle_internal.intact_columns(source, captured.columns_captured) = captured.columns_captured
    then
        perform pgtrickle_internal.create_buffers(source, captured.columns_captured);
        if not pgtrickle_internal.is_decoded(source) then
            perform pgtrickle_internal.compose_capture(source);
        end if;
    end if;
    perform pgtrickle_internal.repair_source(source);
end
$$;
