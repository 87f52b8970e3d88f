-- verify: have a sidecar compare a stream table with its query, and wait for its answer.

-- verify_stream_table: request a comparison, commit, and wait for the result. Raises the sidecar's error: it names some
-- of the rows that differ, so only the owner may ask. The sidecar cancels the comparison when the time is over; this
-- procedure waits a little longer, for its answer.
create or replace procedure pgtrickle.verify_stream_table(name text, timeout interval default '1 h')
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    asked_at timestamptz := pg_catalog.clock_timestamp();
    request bigint;
begin
    perform pgtrickle_internal.check_may_verify(id, timeout);
    request := pgtrickle_internal.request_comparison(id, extract(epoch from timeout)::double precision);
    commit;
    while not pgtrickle_internal.is_verified(request, name) loop
        perform pgtrickle_internal.check_being_verified(id, asked_at, timeout);
        perform pg_catalog.pg_sleep(0.02);
        -- a transaction that stays open would hold back vacuum while we wait
        commit;
    end loop;
end
$$;
comment on procedure pgtrickle.verify_stream_table(text, interval) is
    E'Commit, have the sidecar compare a stream table with PostgreSQL''s own result of its query, and wait. Raises an '
    'error that shows some of the rows that differ, if any do. Pending changes are applied first. Call it with CALL, '
    'outside a transaction block. You must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\ntimeout: Cancel the comparison after this time; null is no limit.';

-- check_may_verify: refuse unless the caller may have the stream table compared and it has rows to compare.
create or replace function pgtrickle_internal.check_may_verify(id bigint, timeout interval) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
begin
    if not pgtrickle_internal.may_ask(id) then
        raise exception '%', format('only its owner may verify stream table %s', pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = (select format('It belongs to %I.', pg_get_userbyid(c.relowner)) from pg_class c where c.oid = relation_id);
    end if;
    if timeout <= interval '0' then
        raise exception '%', format('%L is not a timeout', timeout) using
            errcode = 'invalid_parameter_value', hint = 'Use an interval such as 10 min, or null for no limit.';
    end if;
    perform pgtrickle_internal.check_not_suspended(id);
    if exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = id and not s.is_populated) then
        raise exception '%', format('stream table %s has not been loaded yet', pgtrickle_internal.printed(relation_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = format('Load it with: call pgtrickle.refresh_and_wait(%L).', pgtrickle_internal.printed(relation_id));
    end if;
end
$$;

-- check_being_verified: refuse to wait any longer if the stream table was suspended, if no sidecar is there to answer, or
-- if the time is over. A sidecar that is starting has three seconds to report.
create or replace function pgtrickle_internal.check_being_verified(id bigint, asked_at timestamptz, timeout interval) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_not_suspended(id);
    if clock_timestamp() > asked_at + interval '3 s' and not pgtrickle_internal.is_served() then
        raise exception '%', format('stream table %s was not verified: %s', pgtrickle_internal.shown_name(id),
                pgtrickle_internal.waits_for_sidecar())
        using errcode = 'cannot_connect_now', hint = 'Start one with: pgtrickle run.';
    elsif clock_timestamp() > asked_at + timeout + interval '30 s' then
        raise exception '%', format('stream table %s was not verified within %s', pgtrickle_internal.shown_name(id), timeout)
        using errcode = 'query_canceled', detail = coalesce(pgtrickle_internal.waits_for_spark(), ''),
            hint = 'The request is stored: the comparison still happens.';
    end if;
end
$$;

-- is_verified: whether a comparison is finished and found no difference. Raises the error that the sidecar answered.
create or replace function pgtrickle_internal.is_verified(request bigint, name text) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
    found record;
    failure jsonb;
begin
    select * into found from pgtrickle_internal.result_of(request);
    if found.is_answered is null then
        raise exception '%', format('stream table %s was dropped while it was compared', name) using
            errcode = 'TS002', hint = 'select * from pgtrickle.pgt_status() lists all stream tables.';
    elsif not found.is_answered then
        return false;
    end if;
    failure := found.answer -> 'error';
    if failure is not null then
        raise exception '%', failure ->> 'message' using
            errcode = coalesce(failure ->> 'sqlstate', 'external_routine_exception'),
            detail = coalesce(failure ->> 'detail', ''), hint = coalesce(failure ->> 'hint', '');
    elsif found.error_message is not null then
        raise exception '%', format('%s was not compared: %s', name, found.error_message) using
            errcode = 'external_routine_exception', hint = 'Try again.';
    elsif found.answer ? 'uncompared' then
        raise exception '%', format('%s cannot be compared with its query: %s', name, found.answer ->> 'uncompared') using
            errcode = 'TS010',
            hint = 'To resume a stream table that is suspended, run select pgtrickle.resume_stream_table(name).';
    end if;
    return true;
end
$$;
