-- touched: which sources were written since the last poll. Run as the sidecar's role, or inside a trigger function
-- that runs as it.

-- wake_lock: the class of the advisory locks by which a listening sidecar asks to be notified. Sources share a few
-- of them: each lock that is held takes memory of the server.
create or replace function pgtrickle_internal.wake_lock() returns integer
language sql immutable as $$ select 1885828212 $$;

create or replace function pgtrickle_internal.wake_slot(source oid) returns integer
language sql immutable as $$ select (source::bigint % 128)::integer $$;

-- touching: the statements by which a writer records that it wrote to a source, as text for its trigger function.
-- One row for each statement, or one for each transaction if the trigger fires for each row.
-- A writer that cannot get the lock of its source in share mode notifies the holder. It never waits, and while it
-- holds the lock no sidecar can ask to be notified: no running writer is missed. A notification takes a lock that
-- all committing writers share, so only the first writers after a pause may send one. A transaction that has sent
-- one cannot be prepared, so none is sent if the server allows prepared transactions. A full notification queue
-- makes the commit fail, so none is sent once it is half full. If the sidecar's role may not call these functions
-- nothing is sent, and the write continues.
create or replace function pgtrickle_internal.touching(source oid, is_by_row boolean) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select format(case when is_by_row then $body$
        if coalesce(pg_catalog.current_setting('pgtrickle.touched_%1$s', true), '') operator(pg_catalog.=) '' then
            perform pg_catalog.set_config('pgtrickle.touched_%1$s', 'yes', true);
            %2$s
        end if;
        $body$ else '%2$s' end, source, format($body$
        if pg_catalog.has_function_privilege(%4$s::pg_catalog.oid, 'EXECUTE') then
            if not pg_catalog.pg_try_advisory_xact_lock_shared(%2$s, %3$s) then
                if pg_catalog.has_function_privilege(%5$s::pg_catalog.oid, 'EXECUTE') then
                    if pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
                        if pg_catalog.has_function_privilege(%6$s::pg_catalog.oid, 'EXECUTE') then
                            if pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.5 then
                                perform pg_catalog.pg_notify('pgtrickle_wake', '');
                            end if;
                        end if;
                    end if;
                end if;
            end if;
        end if;
        if (pg_catalog.date_part('epoch', pg_catalog.now())::bigint operator(pg_catalog./) 60)
            operator(pg_catalog.%%) 2 operator(pg_catalog.=) 0
        then
            insert into pgtrickle_changes.touched_0 (source) values (%1$s::pg_catalog.oid);
        else
            insert into pgtrickle_changes.touched_1 (source) values (%1$s::pg_catalog.oid);
        end if;
        $body$, source, pgtrickle_internal.wake_lock(), pgtrickle_internal.wake_slot(source),
        'pg_try_advisory_xact_lock_shared(integer, integer)'::regprocedure::oid,
        'pg_notify(text, text)'::regprocedure::oid, 'pg_notification_queue_usage()'::regprocedure::oid))
$$;

-- side_written: the side to which writers write now.
create or replace function pgtrickle_internal.side_written() returns integer
language sql stable set search_path = pg_catalog, pg_temp
as $$ select ((date_part('epoch', now())::bigint / 60) % 2)::integer $$;

-- touch: the same for changes that no trigger has recorded.
create or replace function pgtrickle_internal.touch(source oid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$ insert into pgtrickle_changes.touched_0 (source) values (source) $$;

-- oldest_unseen: for each reader that lags behind, and each of its sources, the oldest transaction on one side of
-- the touched tables that the reader has not seen, with the time of its write.
create or replace function pgtrickle_internal.oldest_unseen(side integer)
returns table (xid xid8, source oid, touched_at timestamptz)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return query execute format($query$
        select distinct u.xid, u.source, u.touched_at from (
            select distinct on (r.pgt_id, t.source) t.xid, t.source, t.touched_at
            from (
                select d.pgt_id, d.source_relid, case d.source_type when 'stream_table'
                    then coalesce(s.upstream_frontier, s.frontier) else s.frontier end as seen
                from pgtrickle.pgt_dependencies d join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
                where d.source_type in ('table', 'stream_table', 'materialized_view', 'foreign_table', 'attached_table')
                union all
                select hashtextextended(o.reader::text, 0), o.source_relid, o.frontier
                from pgtrickle.pgt_remote_readers o where o.frontier is not null
            ) r
            join pgtrickle_changes.touched_%s t on t.source = r.source_relid
                and t.xid >= pg_snapshot_xmin(r.seen) and not pg_visible_in_snapshot(t.xid, r.seen)
            order by r.pgt_id, t.source, t.xid, t.touched_at
        ) u $query$, side);
end
$$;

-- empty_touched: truncate a side that a sufficiently old snapshot has seen completely. Returns true if it is
-- empty. What a stream table has yet to show moves to the other side, so that its age stays known.
-- Locks: ACCESS EXCLUSIVE on that side, only if free: a session that is writing to it has not been seen yet.
create or replace function pgtrickle_internal.empty_touched(side integer, seen pg_snapshot) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    name text := format('pgtrickle_changes.touched_%s', side);
    is_unseen boolean;
    xids xid8[];
    sources oid[];
    moments timestamptz[];
begin
    if pg_relation_size(name::regclass) = 0 then
        return true;
    end if;
    -- before the lock, because polls wait for it
    select array_agg(o.xid), array_agg(o.source), array_agg(o.touched_at) into xids, sources, moments
    from pgtrickle_internal.oldest_unseen(side) o;
    execute format('lock table %s in access exclusive mode nowait', name);
    execute format('select exists (select from %s t where t.xid >= pg_snapshot_xmin($1) '
        'and not pg_visible_in_snapshot(t.xid, $1))', name) into is_unseen using seen;
    if is_unseen then
        return false;
    end if;
    execute format('insert into pgtrickle_changes.touched_%s (xid, source, touched_at) '
        'select * from unnest($1, $2, $3)', 1 - side) using xids, sources, moments;
    execute format('truncate %s', name);
    return true;
exception when lock_not_available then
    return false;
end
$$;
