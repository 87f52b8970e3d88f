-- rotate: empty the buffer that all readers have processed, and write to it again.
-- Run as the sidecar's role. Never waits for a lock.

-- empty_retired: truncate the buffer that is no longer written, if every reader has processed all of it.
-- Locks: ACCESS EXCLUSIVE on that buffer, only if free. Once we hold the lock, writers that ran the old function
-- have finished, so the buffer is complete. A reader without a frontier takes its first snapshot under its claim:
-- if we can share-lock its row, it is not being loaded, and a later load sees everything in this buffer.
create or replace function pgtrickle_internal.empty_retired(source oid, active smallint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    buffer text := format('pgtrickle_changes.changes_%s_%s', source, 1 - active);
    is_needed boolean;
    reader record;
begin
    if pg_relation_size(buffer::regclass) = 0 then
        return true;
    end if;
    execute format('lock table %s in access exclusive mode nowait', buffer);
    for reader in
        select s.pgt_id, s.frontier, s.upstream_frontier
        from pgtrickle.pgt_stream_tables s
        join pgtrickle.pgt_dependencies d on d.pgt_id = s.pgt_id
        where d.source_relid = source and d.source_type not in ('view', 'function')
    loop
        if reader.frontier is null and reader.upstream_frontier is null then
            perform from pgtrickle.pgt_stream_tables s
            where s.pgt_id = reader.pgt_id and s.frontier is null and s.upstream_frontier is null
            for share skip locked;
            if not found then
                return false;
            end if;
            continue;
        end if;
        execute format('select exists (select from %s b, unnest($1) f(seen) '
            'where f.seen is not null and b.xid >= pg_snapshot_xmin(f.seen) '
            'and not pg_visible_in_snapshot(b.xid, f.seen))', buffer)
        into is_needed
        using array[reader.frontier, reader.upstream_frontier];
        if is_needed then
            return false;
        end if;
    end loop;
    for reader in select r.frontier from pgtrickle.pgt_remote_readers r where r.source_relid = source and r.frontier is not null
    loop
        execute format('select exists (select from %s b where b.xid >= pg_snapshot_xmin($1) '
            'and not pg_visible_in_snapshot(b.xid, $1))', buffer) into is_needed using reader.frontier;
        if is_needed then
            return false;
        end if;
    end loop;
    execute format('truncate %s', buffer);
    return true;
exception when lock_not_available then
    return false;
end
$$;

-- rotate: empty the retired buffer, and retire the active one if it is larger than `min_bytes`.
-- Returns true if the buffers were swapped.
create or replace function pgtrickle_internal.rotate(source oid, min_bytes bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    captured pgtrickle.pgt_sources;
begin
    select * into captured from pgtrickle.pgt_sources s
    where s.source_relid = source for no key update skip locked;
    if not found or not pgtrickle_internal.empty_retired(source, captured.active_buffer) then
        return false;
    end if;
    if pg_relation_size(format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer)::regclass)
        < min_bytes
    then
        return false;
    end if;
    update pgtrickle.pgt_sources s
    set active_buffer = 1 - s.active_buffer, retired_at = pg_current_snapshot()
    where s.source_relid = source;
    if captured.trigger_level <> 'none' and not pgtrickle_internal.is_decoded(source) then
        perform pgtrickle_internal.compose_capture(source);
    end if;
    return true;
end
$$;
