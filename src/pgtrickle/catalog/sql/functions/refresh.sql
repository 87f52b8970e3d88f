-- refresh: request a refresh from the sidecar, and wait for its answer.

-- check_may_refresh: refuse unless the caller is the owner of the stream table and nothing prevents a refresh.
-- Runs as the caller.
create or replace function pgtrickle_internal.check_may_refresh(id bigint) returns void
language plpgsql stable
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
    owner_id oid := (select c.relowner from pg_catalog.pg_class c where c.oid = relation_id);
begin
    if not pg_catalog.pg_has_role(owner_id, 'USAGE') then
        raise exception '%', pg_catalog.format('only its owner may refresh stream table %s',
                pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = pg_catalog.format('It belongs to %I.', pg_catalog.pg_get_userbyid(owner_id));
    end if;
    perform pgtrickle_internal.check_waits_for_nothing(id);
end
$$;

-- may_refresh: whether the caller may act as the owner of a stream table; in a copy its id belongs to another
-- table.
create or replace function pgtrickle_internal.may_refresh(id bigint) returns boolean
language sql stable as $$
    select exists (select from pgtrickle.pgt_stream_tables s join pg_catalog.pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = id and pg_catalog.pg_has_role(c.relowner, 'USAGE') and not pgtrickle.is_copy())
$$;

-- own_requests: the requests for stream tables that the current role may refresh. A view checks the role that is
-- current where it is used. A function that runs as the sidecar's role would only know the session user, and other
-- code that runs in that session would get the rights of that user.
create or replace view pgtrickle_internal.own_requests with (security_barrier) as
select r.request_id, r.pgt_id, r.answered_at, r.error_message
from pgtrickle.pgt_refresh_requests r
where pgtrickle_internal.may_refresh(r.pgt_id) or pg_catalog.pg_has_role(pgtrickle.sidecar_role(), 'USAGE')
with cascaded check option;

-- request_refresh: record a request for a refresh; the sidecar sees it after the commit.
create or replace function pgtrickle_internal.request_refresh(id bigint) returns bigint
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
    request bigint;
begin
    perform pgtrickle_internal.check_not_copy();
    if not pgtrickle_internal.may_refresh(id) then
        raise exception 'only its owner may refresh a stream table' using
            errcode = 'insufficient_privilege', hint = 'Ask its owner, or become a member of that role.';
    end if;
    insert into pgtrickle_internal.own_requests (pgt_id) values (id) returning request_id into request;
    return request;
end
$$;

-- answer_to: the answer to a request: null if there is none yet, '' for success, or the error message. Only for
-- roles that may refresh the stream table: an error may quote its data.
create or replace function pgtrickle_internal.answer_to(request bigint) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
    select coalesce(r.error_message, '') from pgtrickle_internal.own_requests r
    where r.request_id = request and r.answered_at is not null
$$;

create or replace function pgtrickle_internal.raise_unanswered(name text, timeout interval) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    waits text := pgtrickle_internal.waits_for_spark();
begin
    raise exception '%', format('no sidecar has refreshed %s within %s', name, timeout) using
        errcode = 'query_canceled', detail = coalesce(waits, ''),
        hint = case when waits is null
            then 'Is one running? Start it with: pgtrickle run. The request stays, and is answered later.'
            else 'Spark is started again by itself. The request stays, and is answered then.' end;
end
$$;

-- refresh_and_wait: request a refresh, commit, and wait until it is done. Raises the sidecar's error.
create or replace procedure pgtrickle.refresh_and_wait(name text, timeout interval default '60 s')
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    request bigint;
    answer text;
    deadline timestamptz := pg_catalog.clock_timestamp() + timeout;
begin
    perform pgtrickle_internal.check_may_refresh(id);
    request := pgtrickle_internal.request_refresh(id);
    commit;
    loop
        answer := pgtrickle_internal.answer_to(request);
        exit when answer is not null;
        if pg_catalog.clock_timestamp() > deadline then
            perform pgtrickle_internal.raise_unanswered(name, timeout);
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
    'Commit, refresh a stream table and wait for the result. Call it with CALL, outside a transaction '
    'block. You must own the stream table.';

-- create_stream_table_and_wait: create, commit, and wait until the sidecar has loaded it.
create or replace procedure pgtrickle.create_stream_table_and_wait(
    name text, query text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    timeout interval default '10 min'
)
language plpgsql
as $$
begin
    perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode);
    call pgtrickle.refresh_and_wait(name, timeout);
end
$$;
comment on procedure pgtrickle.create_stream_table_and_wait(text, text, text, text, interval) is
    'Create a stream table, commit, and wait until it is loaded. Call it with CALL, outside a transaction '
    'block. Needs the same rights as create_stream_table.';

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
        raise exception 'the wish to refresh % cannot be made known', name using
            errcode = 'lock_not_available', hint = 'Somebody holds our advisory lock exclusively.';
    end if;
    while not pgtrickle_internal.is_refreshed_since(id, asked_in) loop
        failure := pgtrickle_internal.failure_since(id, asked_at);
        if failure is not null then
            raise exception 'refresh of % failed: %', name, failure using
                errcode = 'external_routine_exception',
                hint = 'pgtrickle.get_refresh_history shows the attempts.';
        end if;
        if pg_catalog.clock_timestamp() > asked_at + timeout then
            perform pgtrickle_internal.raise_unanswered(name, timeout);
        end if;
        perform pg_catalog.pg_sleep(0.02);
    end loop;
end
$$;
comment on function pgtrickle.refresh_stream_table(text) is
    'Refresh a stream table and wait for the result inside the current transaction; changes that this '
    'transaction made itself are not included. Call it with SELECT. You must own the stream table.';

create or replace function pgtrickle.manual_refresh(stream_table_name text) returns void
language sql as $$ select pgtrickle.refresh_stream_table(stream_table_name) $$;
comment on function pgtrickle.manual_refresh(text) is
    'The same as refresh_stream_table. Call it with SELECT. You must own the stream table.';

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
