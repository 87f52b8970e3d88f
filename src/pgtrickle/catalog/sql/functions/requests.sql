-- requests: what users ask of a sidecar, and its answers. A request is a refresh of a stream table, a comparison of a
-- stream table with its query, or a preview of the next refresh.

-- may_refresh: whether the caller may act as the owner of a stream table; in a copy its id belongs to another
-- table.
create or replace function pgtrickle_internal.may_refresh(id bigint) returns boolean
language sql stable as $$
    select exists (select from pgtrickle.pgt_stream_tables s join pg_catalog.pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = id and pg_catalog.pg_has_role(c.relowner, 'USAGE') and not pgtrickle.is_copy())
$$;

-- may_ask: whether the caller may act as the owner of a stream table, or as the sidecar's role, which may refresh all.
create or replace function pgtrickle_internal.may_ask(id bigint) returns boolean
language sql stable as $$
    select pgtrickle_internal.may_refresh(id) or pg_catalog.pg_has_role(pgtrickle.sidecar_role(), 'USAGE')
$$;

-- check_not_suspended: refuse to refresh a stream table that is suspended, with the error that suspended it.
create or replace function pgtrickle_internal.check_not_suspended(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    name text := pgtrickle_internal.shown_name(id);
    last_error text;
begin
    select i.last_error into last_error
    from pgtrickle.stream_tables_info i where i.pgt_id = id and i.status = 'SUSPENDED';
    if found then
        raise exception '%', format('stream table %s is suspended', name) || coalesce(': ' || last_error, '') using
            errcode = 'TS010',
            hint = format('Resume it with: select pgtrickle.resume_stream_table(%L).', name);
    end if;
end
$$;

-- check_may_refresh: refuse unless the caller may ask for a refresh of the stream table and nothing prevents it.
-- Runs as the caller.
create or replace function pgtrickle_internal.check_may_refresh(id bigint) returns void
language plpgsql stable
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
    owner_id oid := (select c.relowner from pg_catalog.pg_class c where c.oid = relation_id);
begin
    if not pgtrickle_internal.may_ask(id) then
        raise exception '%', pg_catalog.format('only its owner may refresh stream table %s',
                pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = pg_catalog.format('It belongs to %I.', pg_catalog.pg_get_userbyid(owner_id));
    end if;
    perform pgtrickle_internal.check_not_suspended(id);
    perform pgtrickle_internal.check_waits_for_nothing(id);
end
$$;

-- own_requests: the requests for stream tables that the current role may ask about. A view checks the role that is
-- current where it is used. A function that runs as the sidecar's role would only know the session user, and other
-- code that runs in that session would get the rights of that user.
create or replace view pgtrickle_internal.own_requests with (security_barrier) as
select r.request_id, r.pgt_id, r.answered_at, r.error_message, r.kind, r.seconds, r.answer, r.requested_at
from pgtrickle.pgt_refresh_requests r
where pgtrickle_internal.may_ask(r.pgt_id)
with cascaded check option;

-- request: record a request of this kind for a stream table; the sidecar sees it after the commit. `seconds` limits a
-- comparison; null is no limit.
create or replace function pgtrickle_internal.request(id bigint, kind text, seconds double precision) returns bigint
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
    new_id bigint;
begin
    perform pgtrickle_internal.check_not_copy();
    if not pgtrickle_internal.may_ask(id) then
        raise exception '%', format('only its owner may %s a stream table', kind) using
            errcode = 'insufficient_privilege', hint = 'Ask its owner, or become a member of that role.';
    end if;
    insert into pgtrickle_internal.own_requests (pgt_id, kind, seconds) values (id, kind, seconds)
    returning request_id into new_id;
    return new_id;
end
$$;

-- request_refresh, request_comparison: the two kinds of requests.
create or replace function pgtrickle_internal.request_refresh(id bigint) returns bigint
language sql as $$ select pgtrickle_internal.request(id, 'refresh', null) $$;
create or replace function pgtrickle_internal.request_comparison(id bigint, seconds double precision) returns bigint
language sql as $$ select pgtrickle_internal.request(id, 'verify', seconds) $$;

-- request_preview: ask what the next refresh would change; only for roles that may also read the rows.
create or replace function pgtrickle_internal.request_preview(id bigint, seconds double precision) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_read_changes(id);
    return pgtrickle_internal.request(id, 'preview', seconds);
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

-- result_of: what came of a request, for programs: whether it was answered, the answer, and the error message.
-- No row if the request or its stream table is gone.
create or replace function pgtrickle_internal.result_of(request bigint)
returns table (is_answered boolean, answer jsonb, error_message text)
language sql stable rows 1 security invoker set search_path = pg_catalog, pg_temp
as $$
    select r.answered_at is not null, r.answer, r.error_message
    from pgtrickle_internal.own_requests r where r.request_id = request
$$;

-- check_served: refuse to wait any longer if the stream table was suspended, or if no sidecar is there to answer.
-- One that is starting has three seconds to report.
create or replace function pgtrickle_internal.check_served(id bigint, asked_at timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_not_suspended(id);
    if clock_timestamp() > asked_at + interval '3 s' and not pgtrickle_internal.is_served() then
        perform pgtrickle_internal.raise_unserved(id);
    end if;
end
$$;

create or replace function pgtrickle_internal.raise_unserved(id bigint) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
    seen_at text := to_char(pgtrickle_internal.sidecar_seen() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"');
begin
    raise exception '%', format('stream table %s was not refreshed: no sidecar serves this database; %s',
            pgtrickle_internal.shown_name(id), coalesce('the last one was seen at ' || seen_at, 'none has been seen yet'))
    using errcode = 'cannot_connect_now', hint = 'Start one with: pgtrickle run.';
end
$$;

-- raise_unanswered: say why a refresh has not been answered in time. `consequence` is what becomes of the request.
create or replace function pgtrickle_internal.raise_unanswered(id bigint, timeout interval, consequence text)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
    obstacle text;
begin
    if not pgtrickle_internal.is_served() then
        perform pgtrickle_internal.raise_unserved(id);
    end if;
    select coalesce(pgtrickle.waits_for(id), pgtrickle_internal.waits_for_spark(),
        'The last attempt failed, and the next one is at '
            || to_char(i.retry_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') || ': ' || i.last_error)
    into obstacle from pgtrickle.stream_tables_info i where i.pgt_id = id;
    raise exception '%', format('stream table %s was not refreshed within %s', pgtrickle_internal.shown_name(id), timeout)
    using errcode = 'query_canceled', detail = coalesce(obstacle, ''), hint = consequence;
end
$$;
