-- refresh: have a sidecar refresh a stream table, and wait for its answer.

-- refresh_and_wait: request a refresh, commit, and wait until it is done. Raises the sidecar's error.
create or replace procedure pgtrickle.refresh_and_wait(name text, timeout interval default '60 s')
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    request bigint;
    answer text;
    asked_at timestamptz := pg_catalog.clock_timestamp();
begin
    perform pgtrickle_internal.check_may_refresh(id);
    request := pgtrickle_internal.request_refresh(id);
    commit;
    loop
        answer := pgtrickle_internal.answer_to(request);
        exit when answer is not null;
        perform pgtrickle_internal.check_served(id, asked_at);
        if pg_catalog.clock_timestamp() > asked_at + timeout then
            perform pgtrickle_internal.raise_unanswered(id, timeout,
                'The request is stored: the refresh still happens.');
        end if;
        perform pg_catalog.pg_sleep(0.02);
        -- a transaction that stays open would hold back vacuum while we wait
        commit;
    end loop;
    if answer <> '' then
        raise exception 'refresh of % failed: %', name, answer using errcode = 'external_routine_exception',
            hint = 'pgtrickle.get_refresh_history shows the attempts.';
    end if;
end
$$;
comment on procedure pgtrickle.refresh_and_wait(text, interval) is
    E'Commit, refresh a stream table and wait for the result. Call it with CALL, outside a transaction '
    'block. You must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\ntimeout: How long to wait for the result.';

-- create_stream_table_and_wait: create, commit, and wait until the sidecar has loaded it. If the sidecar finds that
-- DIFFERENTIAL cannot be had, the stream table is dropped again and the reason is raised: only a sidecar can
-- compile a query, and it sees the stream table only after the commit.
create or replace procedure pgtrickle.create_stream_table_and_wait(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    initialize boolean default true, diamond_consistency text default null,
    diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null,
    keep_changes text default null, auxiliary_results text default null, timeout interval default '10 min'
)
language plpgsql
as $$
declare
    asked_at timestamptz := pg_catalog.clock_timestamp();
    id bigint;
    refusal text;
begin
    perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier, refresh_timeout, on_divergence,
        keep_changes, auxiliary_results);
    id := pgtrickle_internal.stream_table(name);
    if not coalesce(initialize, true) then
        -- it stays empty until somebody refreshes it, so there is nothing to wait for
        commit;
        return;
    end if;
    if pg_catalog.upper(pg_catalog.btrim(refresh_mode)) = 'DIFFERENTIAL' then
        perform pgtrickle_internal.request_refresh(id);
        commit;
        while pgtrickle_internal.is_being_compiled(id) loop
            exit when pg_catalog.clock_timestamp() > asked_at + timeout
                or not pgtrickle_internal.is_served();
            perform pg_catalog.pg_sleep(0.02);
            commit;
        end loop;
        refusal := pgtrickle_internal.refusal_of(id);
        if refusal is not null then
            perform pgtrickle.drop_stream_table(name);
            commit;
            raise exception 'stream table % was not created: %', name, refusal using
                errcode = 'TP002',
                hint = 'Use AUTO or FULL, or change the query. `pgtrickle validate` shows the reason without creating anything.';
        end if;
    end if;
    call pgtrickle.refresh_and_wait(name, timeout - (pg_catalog.clock_timestamp() - asked_at));
end
$$;
comment on procedure pgtrickle.create_stream_table_and_wait(text, text, text, text, boolean, text, text, text, boolean, boolean, text, text, text, text, text, interval) is
    E'Create a stream table, commit, and wait until it is loaded. Call it with CALL, outside a '
    'transaction block. Takes the options and needs the rights of create_stream_table. With initialize => false it only '
    'commits, because there is nothing to wait for.\n'
    '\nname: The name of the new stream table, with or without a schema. Without one, it is created in '
    'the first schema of your search_path.'
    '\nquery: The defining query: one SELECT, without a semicolon.'
    '\ntimeout: How long to wait until it is loaded.';

-- is_being_compiled: whether no sidecar has compiled or refused the query of a new stream table yet.
create or replace function pgtrickle_internal.is_being_compiled(id bigint) returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.stream_tables_info i
        where i.pgt_id = id and i.effective_refresh_mode is null and i.status = 'INITIALIZING')
$$;

-- refusal_of: why the query of a stream table that was never loaded cannot be followed; null if it can, or for roles
-- that may not see errors.
create or replace function pgtrickle_internal.refusal_of(id bigint) returns text
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select i.last_error from pgtrickle.stream_tables_info i
    where i.pgt_id = id and i.status = 'ERROR' and not i.is_populated and i.last_error ~ '^PGT-P002'
$$;

-- refresh_lock: the class of the advisory locks that say "a session waits for a refresh of this id".
create or replace function pgtrickle_internal.refresh_lock() returns integer
language sql immutable as $$ select 1885828210 $$;

-- refresh_stream_table: refresh and wait inside the caller's transaction. The sidecar cannot see what this
-- transaction has not committed, so it finds the request in pg_locks. Changes that the transaction itself made are
-- not part of the refresh.
create or replace function pgtrickle.refresh_stream_table(name text) returns void
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    asked_at timestamptz := pg_catalog.clock_timestamp();
    asked_in pg_snapshot := pg_catalog.pg_current_snapshot();
    timeout interval := coalesce(nullif(pg_catalog.current_setting('pgtrickle.wait_timeout', true), ''), '60 s');
    failure text;
begin
    perform pgtrickle_internal.check_may_refresh(id);
    if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'refresh_stream_table cannot wait in a % transaction',
            pg_catalog.current_setting('transaction_isolation') using
            errcode = 'active_sql_transaction',
            hint = 'Such a transaction does not see what the sidecar commits. Refresh before it begins.';
    end if;
    if not pg_catalog.pg_try_advisory_xact_lock_shared(pgtrickle_internal.refresh_lock(), id::integer) then
        raise exception 'the request to refresh % cannot be made', name using
            errcode = 'lock_not_available', hint = 'Another session holds the advisory lock of pgtrickle exclusively.';
    end if;
    while not pgtrickle_internal.is_refreshed_since(id, asked_in) loop
        failure := pgtrickle_internal.failure_since(id, asked_at);
        if failure is not null then
            raise exception 'refresh of % failed: %', name, failure using
                errcode = 'external_routine_exception',
                hint = 'pgtrickle.get_refresh_history shows the attempts.';
        end if;
        perform pgtrickle_internal.check_served(id, asked_at);
        if pg_catalog.clock_timestamp() > asked_at + timeout then
            perform pgtrickle_internal.raise_unanswered(id, timeout,
                'The request ends with this call: call it again, or raise pgtrickle.wait_timeout.');
        end if;
        perform pg_catalog.pg_sleep(0.02);
    end loop;
end
$$;
comment on function pgtrickle.refresh_stream_table(text) is
    E'Refresh a stream table and wait for the result inside the current transaction; changes that this '
    'transaction made itself are not included. Call it with SELECT. You must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';

create or replace function pgtrickle.manual_refresh(stream_table_name text) returns void
language sql as $$ select pgtrickle.refresh_stream_table(stream_table_name) $$;
comment on function pgtrickle.manual_refresh(text) is
    E'The same as refresh_stream_table. Call it with SELECT. You must own the stream table.\n'
    '\nstream_table_name: The stream table. Without a schema, it is looked up along your search_path.';

-- is_refreshed_since: whether a stream table includes everything that a snapshot sees.
create or replace function pgtrickle_internal.is_refreshed_since(id bigint, moment pg_snapshot) returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select s.is_populated and pg_snapshot_xmax(f.seen) >= pg_snapshot_xmax(moment)
        and not exists (select from pg_snapshot_xip(f.seen) running where pg_visible_in_snapshot(running, moment))
    from pgtrickle.pgt_stream_tables s
    cross join lateral (select coalesce(s.frontier, s.upstream_frontier)) f(seen)
    where s.pgt_id = id and f.seen is not null
    union all
    select false
    limit 1
$$;

-- failure_since: the error of a refresh that started after this time, for the owner who waits for it.
create or replace function pgtrickle_internal.failure_since(id bigint, moment timestamptz) returns text
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select coalesce(h.error_message, 'unknown error') from pgtrickle.visible_history h
    where h.pgt_id = id and h.status = 'FAILED' and h.start_time >= moment
    order by h.refresh_id desc limit 1
$$;
