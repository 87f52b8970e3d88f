-- preview: ask a sidecar what the next refresh would change.

-- preview_lock: the class of the advisory locks that say "a session waits for a preview of this id".
create or replace function pgtrickle_internal.preview_lock() returns integer
language sql immutable as $$ select 1885828214 $$;

-- preview_since: the answer to a request for a preview that was made after this time; null if there is none yet.
create or replace function pgtrickle_internal.preview_since(id bigint, moment timestamptz) returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select coalesce(r.answer, '{}') from pgtrickle_internal.own_requests r
    where r.pgt_id = id and r.kind = 'preview' and r.requested_at >= moment and r.answered_at is not null
    order by r.request_id limit 1
$$;

-- wait_for_preview: ask by a lock, which a sidecar sees before any commit, and wait. The lock belongs to a subtransaction
-- that is rolled back, so that it does not last as long as the transaction of the caller.
create or replace function pgtrickle_internal.wait_for_preview(id bigint) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
    asked_at timestamptz := clock_timestamp();
    timeout interval := coalesce(nullif(current_setting('pgtrickle.wait_timeout', true), ''), '60 s');
    answer jsonb;
begin
    if not pg_try_advisory_xact_lock_shared(pgtrickle_internal.preview_lock(), id::integer) then
        raise exception '%', format('the request to preview %s cannot be made', pgtrickle_internal.shown_name(id)) using
            errcode = 'lock_not_available', hint = 'Another session holds the advisory lock of pgtrickle exclusively.';
    end if;
    loop
        answer := pgtrickle_internal.preview_since(id, asked_at);
        exit when answer is not null;
        perform pgtrickle_internal.check_served(id, asked_at);
        if clock_timestamp() > asked_at + timeout then
            raise exception '%', format('there was no preview of %s within %s', pgtrickle_internal.shown_name(id), timeout) using
                errcode = 'query_canceled', hint = 'Try again, or raise pgtrickle.wait_timeout.';
        end if;
        perform pg_sleep(0.02);
    end loop;
    raise exception 'answered';
exception when raise_exception then
    if answer is null then
        raise;
    end if;
    return answer;
end
$$;

create or replace function pgtrickle.preview_refresh(name text, max_rows integer default 100) returns table (
    action text, reason text, rows_inserted bigint, rows_deleted bigint, is_truncated boolean, change text,
    count bigint, data json, row_text text)
language plpgsql
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
    answer jsonb;
begin
    perform pgtrickle_internal.check_may_refresh(id);
    perform pgtrickle_internal.check_may_read_changes(id);
    if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
        raise exception 'preview_refresh cannot wait in a % transaction',
            pg_catalog.current_setting('transaction_isolation') using
            errcode = 'active_sql_transaction',
            hint = 'Such a transaction does not see what the sidecar commits. Call it before it begins.';
    end if;
    answer := pgtrickle_internal.wait_for_preview(id);
    if answer operator(pg_catalog.?) 'error' then
        raise exception 'preview of % failed: %', name, answer operator(pg_catalog.#>>) '{error,message}' using
            errcode = 'external_routine_exception',
            hint = coalesce(answer operator(pg_catalog.#>>) '{error,hint}', '');
    end if;
    return query select * from pgtrickle_internal.preview_rows(answer, max_rows);
end
$$;
comment on function pgtrickle.preview_refresh(text, integer) is
    E'What the next refresh of a stream table would do, without doing it: one row for each row that it would insert or '
    'delete, or a single row if it would change nothing. Waits for the sidecar inside the current transaction. Call it '
    'with SELECT ... FROM. You must own the stream table and may read it.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nmax_rows: How many changes to return at most, up to 1000.'
    '\naction: What it would do: DIFFERENTIAL, FULL, REINITIALIZE or NO_DATA.'
    '\nreason: Why.'
    '\nrows_inserted: How many rows it would insert, in all.'
    '\nrows_deleted: How many rows it would delete, in all.'
    '\nis_truncated: Whether there are more changes than this call returns.'
    '\nchange: insert or delete; null if nothing would change.'
    '\ncount: How many equal rows.'
    '\ndata: The row as JSON. Values of types that are not built into PostgreSQL are strings.'
    '\nrow_text: The row as the text of a record, with every value exact.';

-- preview_rows: the answer of a sidecar as rows.
create or replace function pgtrickle_internal.preview_rows(answer jsonb, max_rows integer) returns table (
    action text, reason text, rows_inserted bigint, rows_deleted bigint, is_truncated boolean, change text,
    count bigint, data json, row_text text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select answer ->> 'action', answer ->> 'reason', (answer ->> 'rows_inserted')::bigint, (answer ->> 'rows_deleted')::bigint,
        (answer ->> 'is_truncated')::boolean or jsonb_array_length(answer -> 'changes') > greatest(max_rows, 0),
        c.change ->> 0, (c.change ->> 1)::bigint, (c.change ->> 2)::json, c.change ->> 3
    from (select) one
    left join lateral (select e.change, e.number from jsonb_array_elements(answer -> 'changes') with ordinality as e(change, number)
        order by e.number limit greatest(max_rows, 0)) c on true
    order by c.number
$$;
