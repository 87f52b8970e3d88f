-- feeds: the changes that refreshes made to stream tables, kept for readers. Each feed has a table in pgtrickle_state,
-- which only the sidecar can use, and a view of it in pgtrickle_internal for roles that can read the stream table.

-- keep_bounds: how long changes are kept and how many rows, from the option keep_changes; null and null for 'off'.
create or replace function pgtrickle_internal.keep_bounds(keep_changes text, out seconds double precision, out most_rows bigint)
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    given text := lower(btrim(keep_changes, E' \t\n\r'));
    parts text[] := regexp_match(given, '^(.*?)(?:[\s,]+([0-9]{1,10})\s*rows?)?$');
begin
    if given is null or given = 'off' then
        return;
    end if;
    begin
        seconds := extract(epoch from case when parts[1] ~ '^[0-9.]+$' then parts[1] || ' s' else parts[1] end::interval);
    exception when others then
        seconds := null;
    end;
    most_rows := coalesce(parts[2]::bigint, 1000000);
    if seconds is null or seconds not between 1 and 31622400 or most_rows not between 1 and 1000000000 then
        raise exception '%', format('%L is not a value of keep_changes', keep_changes) using
            errcode = 'invalid_parameter_value',
            hint = 'Use a length of time from 1s to one year, such as 1h or 7d, optionally with a number of rows '
                '(''1d 50000 rows''), or ''off''.';
    end if;
end
$$;

-- change_columns: the columns of a stream table as a table of changes stores them: as c1 to cn, without domains. A cast
-- from a type of a user to JSON may run code of that user, so such values are written as text.
create or replace function pgtrickle_internal.change_columns(relation_id oid)
returns table (definitions text, shown text, plain text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select string_agg(format(', c%s %s', a.number, a.type), '' order by a.number),
        string_agg(format(case when a.type_id < 16384 then 'k.c%s as %I' else 'pgtrickle_internal.value_text(k.c%s) as %I' end,
            a.number, a.attname), ', ' order by a.number),
        string_agg(format('k.c%s', a.number), ', ' order by a.number)
    from (
        select row_number() over (order by attnum) as number, attname, b.type_id,
            format_type(b.type_id, case when b.type_id = atttypid then coalesce(nullif(atttypmod, -1), -1) else -1 end) as type
        from pg_attribute cross join lateral (select pgtrickle_internal.base_type(atttypid)) b(type_id)
        where attrelid = relation_id and attnum > 0 and not attisdropped
    ) a
$$;

-- create_changes_table: create a table for the changes of a stream table. `place` is SQL that our own code wrote.
create or replace function pgtrickle_internal.create_changes_table(place text, relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('create %s (point bigint primary key, batch bigint not null, weight bigint not null%s)', place,
        (select c.definitions from pgtrickle_internal.change_columns(relation_id) c));
end
$$;

-- changes_query: the query that shows such a table: each row as JSON and as the text of a record. `place` is SQL that our
-- own code wrote.
create or replace function pgtrickle_internal.changes_query(place text, relation_id oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('select k.point, k.batch, case sign(k.weight) when 1 then ''insert'' when -1 then ''delete'' else ''reset'' end as change, '
        'abs(k.weight) as count, case when k.weight <> 0 then (select to_json(x.*) from (select %s) x) end as data, '
        'case when k.weight <> 0 then row(%s)::text end as row_text from %s k', c.shown, c.plain, place)
    from pgtrickle_internal.change_columns(relation_id) c
$$;

-- open_feed: begin to keep the changes of a stream table, or begin again. Earlier points are no longer kept. Runs as the
-- sidecar's role, in a transaction that has locked the row of the stream table.
create or replace function pgtrickle_internal.open_feed(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := (select s.pgt_relid from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    kept text := format('pgtrickle_state.kept_changes_%s', id);
begin
    insert into pgtrickle.pgt_feeds (pgt_id, relation_id, columns, kept_after)
    values (id, relation_id, pgtrickle_internal.columns_of(relation_id), nextval('pgtrickle.pgt_change_points'))
    on conflict (pgt_id) do update set relation_id = excluded.relation_id, columns = excluded.columns,
        -- who has read everything can go on: the next thing they read is the reset
        kept_after = coalesce((select max(b.last_point) from pgtrickle.pgt_batches b where b.pgt_id = id), pgt_feeds.kept_after),
        reset_reason = null;
    perform pgtrickle_internal.drop_kept_changes(id);
    perform pgtrickle_internal.create_changes_table('table ' || kept, relation_id);
    execute format('create view pgtrickle_internal.kept_changes_%s with (security_barrier) as '
        'select v.*, b.refreshed_at, v.point = b.last_point as is_last, b.reset_reason from (%s) v '
        'join pgtrickle.pgt_batches b on b.batch = v.batch where pgtrickle_internal.may_read_changes(%s)',
        id, pgtrickle_internal.changes_query(kept, relation_id), id);
    execute format('grant select on pgtrickle_internal.kept_changes_%s to public', id);
end
$$;

-- drop_kept_changes: drop what is kept of the changes of a stream table.
create or replace function pgtrickle_internal.drop_kept_changes(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- IF EXISTS would tell the caller what is not there
    if to_regclass(format('pgtrickle_internal.kept_changes_%s', id)) is not null then
        execute format('drop view pgtrickle_internal.kept_changes_%s', id);
    end if;
    if to_regclass(format('pgtrickle_state.kept_changes_%s', id)) is not null then
        execute format('drop table pgtrickle_state.kept_changes_%s', id);
    end if;
    delete from pgtrickle.pgt_batches b where b.pgt_id = id;
end
$$;

-- fit_feed: open or close the feed of a stream table after its options were stored.
create or replace function pgtrickle_internal.fit_feed(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    is_kept boolean := (select s.keep_changes is not null from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    is_open boolean := exists (select from pgtrickle.pgt_feeds f where f.pgt_id = id);
begin
    if is_kept and not is_open then
        perform pgtrickle_internal.open_feed(id);
    elsif is_open and not is_kept then
        delete from pgtrickle.pgt_feeds f where f.pgt_id = id;
        perform pgtrickle_internal.drop_kept_changes(id);
    end if;
end
$$;

-- record_reset: record that a refresh replaced the content of a stream table. Its feed is opened again if the columns or
-- the table itself were replaced.
create or replace function pgtrickle_internal.record_reset(id bigint, refreshed_at timestamptz, reason text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    new_batch bigint;
begin
    if not exists (select from pgtrickle.pgt_feeds f join pgtrickle.pgt_stream_tables s on s.pgt_id = f.pgt_id
        where f.pgt_id = id and f.relation_id = s.pgt_relid and f.columns = pgtrickle_internal.columns_of(s.pgt_relid)
            and to_regclass(format('pgtrickle_state.kept_changes_%s', id)) is not null)
    then
        perform pgtrickle_internal.open_feed(id);
    end if;
    new_batch := nextval('pgtrickle.pgt_change_points');
    execute format('insert into pgtrickle_state.kept_changes_%s (point, batch, weight) values ($1, $1, 0)', id) using new_batch;
    insert into pgtrickle.pgt_batches (batch, pgt_id, last_point, row_count, refreshed_at, reset_reason)
    values (new_batch, id, new_batch, 1, record_reset.refreshed_at, record_reset.reason);
    update pgtrickle.pgt_feeds f set reset_reason = null where f.pgt_id = id and f.reset_reason is not null;
end
$$;

-- forget_feeds: in a copy, close every feed; the next refreshes open them again. Points leap ahead of those that the
-- original database may have given out since.
create or replace function pgtrickle_internal.forget_feeds() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.drop_kept_changes(f.pgt_id) from pgtrickle.pgt_feeds f;
    delete from pgtrickle.pgt_feeds;
    perform setval('pgtrickle.pgt_change_points', nextval('pgtrickle.pgt_change_points') + 1099511627776);
end
$$;

-- unconfirmed_after: the last point of a feed that every registered subscriber of the stream table has confirmed; null if
-- there is none to wait for. What a refresh recorded has been sent by the time at which the next one records. A slot that
-- is gone, or that the server has given up, waits for nothing.
create or replace function pgtrickle_internal.unconfirmed_after(id bigint) returns bigint
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when count(w.lsn) > 0 then coalesce((
        select max(b.last_point) from (
            select o.last_point, lead(o.recorded_lsn) over (order by o.last_point) as next_lsn
            from pgtrickle.pgt_batches o where o.pgt_id = id
        ) b where b.next_lsn <= min(w.lsn)), 0) end
    from (
        select g.confirmed_flush_lsn from pgtrickle_internal.subscriber_progress g
        where g.pgt_id = id and g.slot_state in ('active', 'inactive')
    ) w(lsn)
$$;

-- prune_feed: remove the oldest refreshes of a feed that are too old or too many rows. What a subscriber has not confirmed
-- may become older, but not more.
create or replace function pgtrickle_internal.prune_feed(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    last bigint;
begin
    perform from pgtrickle.pgt_feeds f where f.pgt_id = id for no key update skip locked;
    if not found then
        return;
    end if;
    select max(b.last_point) into last
    from (
        select b.last_point, b.recorded_at, sum(b.row_count) over (order by b.last_point desc) as newer_rows
        from pgtrickle.pgt_batches b where b.pgt_id = id
    ) b
    join pgtrickle.pgt_stream_tables s on s.pgt_id = id
    cross join lateral pgtrickle_internal.keep_bounds(s.keep_changes) k
    cross join lateral (select coalesce(pgtrickle_internal.unconfirmed_after(id), 9223372036854775807)) u(point)
    where b.newer_rows > k.most_rows
        or b.recorded_at < clock_timestamp() - k.seconds * interval '1 s' and b.last_point <= u.point;
    if last is null then
        return;
    end if;
    update pgtrickle.pgt_feeds f set kept_after = last where f.pgt_id = id;
    execute format('delete from pgtrickle_state.kept_changes_%s where point <= $1', id) using last;
    delete from pgtrickle.pgt_batches b where b.pgt_id = id and b.last_point <= last;
end
$$;
