-- pending: which captured changes stream tables do not show yet, for many of them at once. freshness.sql has the same
-- for one stream table; reading each buffer once for all of its readers takes a fraction of the time.
-- `tables` are the ids of stream tables; null means all of them.
-- The functions run as the sidecar's role, because no other role may read the buffers. They return only numbers and
-- times. Each buffer is read in a subtransaction that is rolled back: its lock would last as long as the caller's
-- transaction and keep the buffer from being emptied.

-- readings: every source of a stream table that has change buffers, what the stream table has seen of it, and whether
-- the buffers hold rows; null if one of them is missing.
create or replace function pgtrickle_internal.readings(tables bigint[])
returns table (pgt_id bigint, source oid, source_type text, seen pg_snapshot, is_filled boolean)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    namespace oid := (select n.oid from pg_namespace n where n.nspname = 'pgtrickle_changes');
begin
    return query
        with read as materialized (
            select s.pgt_id, d.source_relid, d.source_type,
                case d.source_type when 'stream_table' then coalesce(s.upstream_frontier, s.frontier) else s.frontier end as seen
            from pgtrickle.pgt_stream_tables s join pgtrickle.pgt_dependencies d on d.pgt_id = s.pgt_id
            where d.source_type not in ('view', 'function') and (tables is null or s.pgt_id = any (tables))
        ), buffers as materialized (
            select r.source_relid, case when count(c.oid) = 2 then bool_or(pg_relation_size(c.oid) > 0) end as is_filled
            from (select distinct read.source_relid from read) r
            cross join generate_series(0, 1) n(side)
            left join pg_class c on c.relname = ('changes_' || r.source_relid || '_' || n.side)::name
                and c.relnamespace = namespace
            group by r.source_relid
        )
        select r.pgt_id, r.source_relid, r.source_type, r.seen, b.is_filled
        from read r join buffers b on b.source_relid = r.source_relid;
end
$$;

-- pending_counts: how many captured changes of each source a stream table has not processed; null if its buffers are
-- missing. A stream table that has not been loaded counts all of them.
create or replace function pgtrickle_internal.pending_counts(tables bigint[])
returns table (pgt_id bigint, source oid, pending_rows bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    reading record;
    counts bigint[];
begin
    if pgtrickle.is_copy() then
        -- changes of the original database mean nothing in a copy
        return;
    end if;
    for reading in
        select r.source, r.is_filled, array_agg(r.pgt_id order by r.pgt_id) as ids, array_agg(r.seen order by r.pgt_id) as seen
        from pgtrickle_internal.readings(tables) r group by r.source, r.is_filled
    loop
        counts := null;
        if reading.is_filled then
            begin
                execute format(
                    'with written as materialized (select a.xid, count(*) as number from ('
                    'select xid, weight from pgtrickle_changes.changes_%1$s_0 union all '
                    'select xid, weight from pgtrickle_changes.changes_%1$s_1) a group by a.xid) '
                    'select array_agg((select coalesce(sum(b.number), 0) from written b where r.seen is null '
                    'or (b.xid >= pg_snapshot_xmin(r.seen) and not pg_visible_in_snapshot(b.xid, r.seen)))::bigint order by r.id) '
                    'from unnest($1, $2) r(id, seen)', reading.source) into counts using reading.ids, reading.seen;
                raise exception using errcode = 'PT001';
            exception
                when sqlstate 'PT001' then null;
                when undefined_table or undefined_column or insufficient_privilege then null;
            end;
        elsif not reading.is_filled then
            counts := array_fill(0::bigint, array[cardinality(reading.ids)]);
        end if;
        return query select u.id, reading.source, u.number
            from unnest(reading.ids, counts) u(id, number) where u.id is not null;
    end loop;
end
$$;

-- oldest_changes: for each stream table and source with pending changes, when the oldest of them was written;
-- '-infinity' if that is not known. What oldest_pending says of one.
create or replace function pgtrickle_internal.oldest_changes(tables bigint[])
returns table (pgt_id bigint, written_at timestamptz)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    reading record;
    ids bigint[];
    xids xid8[];
    late_ids bigint[] := '{}';
    late_sources oid[] := '{}';
    late_xids xid8[] := '{}';
    times timestamptz[];
begin
    for reading in
        select r.source, r.is_filled, array_agg(r.pgt_id) as ids, array_agg(r.seen) as seen
        from pgtrickle_internal.readings(tables) r
        where r.is_filled is distinct from false group by r.source, r.is_filled
    loop
        begin
            execute format(
                'select array_agg(r.id), array_agg(o.xid) from unnest($1, $2) r(id, seen) '
                'cross join lateral ((select b.xid from pgtrickle_changes.changes_%1$s_0 b '
                'where b.xid >= pg_snapshot_xmin(r.seen) and not pg_visible_in_snapshot(b.xid, r.seen) order by b.xid limit 1) '
                'union all (select b.xid from pgtrickle_changes.changes_%1$s_1 b '
                'where b.xid >= pg_snapshot_xmin(r.seen) and not pg_visible_in_snapshot(b.xid, r.seen) order by b.xid limit 1) '
                'order by 1 limit 1) o(xid)', reading.source) into ids, xids using reading.ids, reading.seen;
            raise exception using errcode = 'PT001';
        exception
            when sqlstate 'PT001' then null;
            -- somebody removed what captures changes, so there may be some
            when undefined_table or undefined_column or insufficient_privilege then
                ids := null;
                return query select r.id, '-infinity'::timestamptz from unnest(reading.ids) r(id);
        end;
        if ids is not null then
            late_ids := late_ids || ids;
            late_sources := late_sources || array_fill(reading.source, array[cardinality(ids)]);
            late_xids := late_xids || xids;
        end if;
    end loop;
    if cardinality(late_ids) = 0 then
        return;
    end if;
    begin
        select array_agg(coalesce(least(
            (select min(a.touched_at) from pgtrickle_changes.touched_0 a where a.xid = l.xid and a.source = l.source),
            (select min(b.touched_at) from pgtrickle_changes.touched_1 b where b.xid = l.xid and b.source = l.source)),
            '-infinity') order by l.number)
        into times from unnest(late_sources, late_xids) with ordinality l(source, xid, number);
        raise exception using errcode = 'PT001';
    exception
        when sqlstate 'PT001' then null;
        when undefined_table or undefined_column or insufficient_privilege then
            times := array_fill('-infinity'::timestamptz, array[cardinality(late_ids)]);
    end;
    return query select l.id, l.moment from unnest(late_ids, times) l(id, moment);
end
$$;

-- shown_times: the time before which every committed change is shown, as shown_until computes it for one.
create or replace function pgtrickle_internal.shown_times(tables bigint[])
returns table (pgt_id bigint, shown_until timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    present timestamptz := pgtrickle_internal.snapshot_time();
    upstream_of bigint[] := tables;
begin
    if pgtrickle.is_copy() then
        return query select s.pgt_id, case when s.is_populated then s.data_timestamp end
            from pgtrickle.pgt_stream_tables s where tables is null or s.pgt_id = any (tables);
        return;
    end if;
    if tables is not null then
        upstream_of := array(
            with recursive upstream(pgt_id) as (
                select unnest(tables)
                union
                select s.pgt_id from upstream u
                join pgtrickle.pgt_dependencies d on d.pgt_id = u.pgt_id and d.source_type = 'stream_table'
                join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
            )
            select u.pgt_id from upstream u);
    end if;
    return query
        with recursive pending as (
            select o.pgt_id, o.written_at from pgtrickle_internal.oldest_changes(upstream_of) o
            union all
            -- changes of these leave no trace until a refresh compares them
            select d.pgt_id, '-infinity' from pgtrickle.pgt_dependencies d
            left join pgtrickle.pgt_sources c on c.source_relid = d.source_relid
            where (upstream_of is null or d.pgt_id = any (upstream_of)) and (d.source_type = 'foreign_table'
                or d.source_type = 'materialized_view'
                    and c.version is distinct from pgtrickle_internal.source_version(d.source_relid))
        ), late(pgt_id, shown) as (
            select s.pgt_id, case when b.is_blind then s.data_timestamp else greatest(s.data_timestamp, p.oldest) end
            from pgtrickle.pgt_stream_tables s
            left join (select p.pgt_id, min(p.written_at) as oldest from pending p group by p.pgt_id) p on p.pgt_id = s.pgt_id
            cross join lateral (select s.needs_reinit or s.ground_error is not null or s.follows_clock is true
                or exists (select from pgtrickle.pgt_waiting w where w.pgt_id = s.pgt_id)) b(is_blind)
            where s.is_populated and (b.is_blind or p.oldest is not null)
                and (upstream_of is null or s.pgt_id = any (upstream_of))
            union
            -- what a stream table does not show, its readers do not show either
            select d.pgt_id, l.shown from late l
            join pgtrickle.pgt_stream_tables s on s.pgt_id = l.pgt_id
            join pgtrickle.pgt_dependencies d on d.source_relid = s.pgt_relid and d.source_type = 'stream_table'
        )
        select s.pgt_id, case when s.is_populated then least(present, l.shown) end
        from pgtrickle.pgt_stream_tables s
        left join (select l.pgt_id, min(l.shown) as shown from late l group by l.pgt_id) l on l.pgt_id = s.pgt_id
        where tables is null or s.pgt_id = any (tables);
end
$$;
