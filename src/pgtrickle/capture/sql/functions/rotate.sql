-- rotate: empty the buffer that all readers have processed, and write to it again.
-- Run as the sidecar's role. Never waits for a lock.

-- buffer_index: the name of the index on the transactions of a buffer, null if it has none. Only a buffer that has
-- grown has one, and those of earlier versions.
create or replace function pgtrickle_internal.buffer_index(source oid, buffer integer) returns name
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = to_regclass(format('pgtrickle_changes.changes_%s_%s', source, buffer))
    order by c.relname limit 1
$$;

-- empty_retired: truncate the buffer that is no longer written, if every reader has processed all of it, and drop
-- its index.
-- Locks: ACCESS EXCLUSIVE on that buffer, only if free. Once we hold the lock, writers that ran the old function
-- have finished, so the buffer is complete. A reader without a frontier takes its first snapshot under its claim:
-- if we can share-lock its row, it is not being loaded, and a later load sees everything in this buffer.
create or replace function pgtrickle_internal.empty_retired(source oid, active smallint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    buffer text := format('pgtrickle_changes.changes_%s_%s', source, 1 - active);
    newest xid8;
    is_needed boolean;
    reader record;
begin
    if pg_relation_size(buffer::regclass) = 0 and pgtrickle_internal.buffer_index(source, 1 - active) is null then
        return true;
    end if;
    execute format('lock table %s in access exclusive mode nowait', buffer);
    execute format('select b.xid from %s b order by b.xid desc limit 1', buffer) into newest;
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
                raise lock_not_available;
            end if;
            continue;
        end if;
        if newest < least(pg_snapshot_xmin(reader.frontier), pg_snapshot_xmin(reader.upstream_frontier)) then
            continue;
        end if;
        execute format('select exists (select from %s b, unnest($1) f(seen) '
            'where f.seen is not null and b.xid >= pg_snapshot_xmin(f.seen) '
            'and not pg_visible_in_snapshot(b.xid, f.seen))', buffer)
        into is_needed
        using array[reader.frontier, reader.upstream_frontier];
        if is_needed then
            raise lock_not_available;
        end if;
    end loop;
    for reader in select r.frontier from pgtrickle.pgt_remote_readers r where r.source_relid = source and r.frontier is not null
    loop
        if newest < pg_snapshot_xmin(reader.frontier) then
            continue;
        end if;
        execute format('select exists (select from %s b where b.xid >= pg_snapshot_xmin($1) '
            'and not pg_visible_in_snapshot(b.xid, $1))', buffer) into is_needed using reader.frontier;
        if is_needed then
            raise lock_not_available;
        end if;
    end loop;
    execute format('truncate %s', buffer);
    if pgtrickle_internal.buffer_index(source, 1 - active) is not null then
        execute format('drop index pgtrickle_changes.%I', pgtrickle_internal.buffer_index(source, 1 - active));
    end if;
    return true;
exception when lock_not_available then
    -- somebody still needs it; this has released our lock, so that nobody waits for the rest of the transaction
    return false;
end
$$;

-- index_retired: give the retired buffer an index, so that a window is found without reading all of it. No writer
-- pays for it or waits for it: they write to the other buffer.
-- Locks: SHARE on that buffer, only if free.
create or replace function pgtrickle_internal.index_retired(source oid, active smallint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set default_tablespace = ''
as $$
declare
    buffer text := format('pgtrickle_changes.changes_%s_%s', source, 1 - active);
begin
    execute format('lock table %s in share mode nowait', buffer);
    execute format('create index on %s (xid)', buffer);
exception when lock_not_available then
    -- a writer that began before the buffers were swapped; the next call tries again
    return;
end
$$;

-- rotate: empty the retired buffer, and retire the active one if it is larger than `min_bytes`. While somebody
-- still needs the retired one, both may grow beyond `grown_bytes`: then each is indexed while the other is written.
-- Returns true if the buffers were swapped.
drop function if exists pgtrickle_internal.rotate(oid, bigint);
create or replace function pgtrickle_internal.rotate(
    source oid, min_bytes bigint, grown_bytes bigint default 16777216
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    captured pgtrickle.pgt_sources;
    sizes bigint[];
begin
    select * into captured from pgtrickle.pgt_sources s
    where s.source_relid = source for no key update skip locked;
    if not found then
        return false;
    end if;
    if not pgtrickle_internal.empty_retired(source, captured.active_buffer) then
        select array_agg(case when pgtrickle_internal.buffer_index(source, b.number) is null then
            pg_relation_size(format('pgtrickle_changes.changes_%s_%s', source, b.number)::regclass) end order by b.rank)
        into sizes from unnest(array[captured.active_buffer, 1 - captured.active_buffer]) with ordinality b(number, rank);
        if sizes[2] >= grown_bytes then
            perform pgtrickle_internal.index_retired(source, captured.active_buffer);
            return false;
        elsif coalesce(sizes[1], 0) < grown_bytes then
            return false;
        end if;
    elsif pg_relation_size(format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer)::regclass)
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
