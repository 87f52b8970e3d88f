-- freshness: up to which time a stream table shows every change. A change counts from its write, which is the
-- latest time before its commit that is known without track_commit_timestamp.

-- snapshot_time: a time before the snapshot of the calling query: what was committed earlier is visible to it.
create or replace function pgtrickle_internal.snapshot_time() returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case current_setting('transaction_isolation') when 'read committed' then statement_timestamp() else now() end
$$;

-- oldest_pending: the write time of the oldest captured transaction on a source that a frontier has not seen; null
-- if it has seen all of them, '-infinity' if the time is not known. Transactions are compared by their ids.
-- Reads the buffers in a subtransaction that is rolled back: their locks would last as long as the caller's
-- transaction and keep them from being emptied.
create or replace function pgtrickle_internal.oldest_pending(source oid, seen pg_snapshot) returns timestamptz
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    oldest xid8;
    written_at timestamptz;
begin
    -- most sources are idle, and this is cheaper than a query
    if pg_relation_size(to_regclass(format('pgtrickle_changes.changes_%s_0', source))) = 0
        and pg_relation_size(to_regclass(format('pgtrickle_changes.changes_%s_1', source))) = 0
    then
        return null;
    end if;
    begin
        execute format(
            '(select b.xid from pgtrickle_changes.changes_%1$s_0 b '
            'where b.xid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(b.xid, $1) order by b.xid limit 1) '
            'union all (select b.xid from pgtrickle_changes.changes_%1$s_1 b '
            'where b.xid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(b.xid, $1) order by b.xid limit 1) '
            'order by 1 limit 1', source) into oldest using seen;
        if oldest is not null then
            select t.touched_at into written_at
            from (
                select a.xid, a.source, a.touched_at from pgtrickle_changes.touched_0 a
                union all
                select b.xid, b.source, b.touched_at from pgtrickle_changes.touched_1 b
            ) t(xid, source, touched_at)
            where t.xid = oldest and t.source = oldest_pending.source
            order by t.touched_at limit 1;
        end if;
        raise exception using errcode = 'PT001';
    exception
        when sqlstate 'PT001' then null;
        -- somebody removed what captures changes, so there may be some
        when undefined_table or undefined_column or insufficient_privilege then return '-infinity';
    end;
    return case when oldest is not null then coalesce(written_at, '-infinity') end;
end
$$;

-- shown_until: the time before which every committed change is shown by a stream table; null before its first
-- load. Without pending changes that is the time of the snapshot. Otherwise it is the write time of the oldest
-- pending one, or the last refresh if that was later. Only the last refresh counts if changes cannot be seen
-- coming: the clock, foreign tables, altered definitions. What it reads through other stream tables counts too.
-- In a copy of a database, ids mean other tables, so only the last refresh counts.
-- Runs as the sidecar's role, because no other role may read the buffers; it only returns a time.
create or replace function pgtrickle_internal.shown_until(id bigint, is_copy boolean) returns timestamptz
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    shown timestamptz := pgtrickle_internal.snapshot_time();
    reading record;
begin
    if is_copy then
        return (select s.data_timestamp from pgtrickle.pgt_stream_tables s where s.pgt_id = id and s.is_populated);
    end if;
    for reading in
        with recursive upstream(pgt_id) as (
            select id
            union
            select s.pgt_id from upstream u
            join pgtrickle.pgt_dependencies d on d.pgt_id = u.pgt_id and d.source_type = 'stream_table'
            join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
        )
        select s.pgt_id, s.is_populated, s.data_timestamp,
            s.needs_reinit or s.ground_error is not null or s.follows_clock is true
                or exists (select from pgtrickle.pgt_waiting w where w.pgt_id = s.pgt_id) as is_blind
        from upstream u join pgtrickle.pgt_stream_tables s on s.pgt_id = u.pgt_id
    loop
        if not reading.is_populated then
            if reading.pgt_id = id then
                return null;
            end if;
            continue;
        end if;
        shown := least(shown, case when reading.is_blind then reading.data_timestamp else (
            select greatest(reading.data_timestamp, min(p.pending))
            from pgtrickle.pgt_dependencies d
            join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
            left join pgtrickle.pgt_sources c on c.source_relid = d.source_relid
            cross join lateral (select case
                when d.source_type = 'foreign_table' then '-infinity'
                when d.source_type = 'materialized_view'
                    and c.version is distinct from pgtrickle_internal.source_version(d.source_relid) then '-infinity'
                else pgtrickle_internal.oldest_pending(d.source_relid, case d.source_type when 'stream_table'
                    then coalesce(s.upstream_frontier, s.frontier) else s.frontier end)
                end) p(pending)
            where d.pgt_id = reading.pgt_id and d.source_type not in ('view', 'function')
            having min(p.pending) is not null) end);
    end loop;
    return shown;
end
$$;
