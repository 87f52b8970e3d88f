-- hand_over: change how a source is captured, from triggers to the log and back, while applications write to it.
-- No transaction that writes to the source can be on both sides: we hold a lock of the table that waits for all of its
-- writers. The position of the log at that moment separates them: whoever commits before is captured in the old way,
-- whoever commits later in the new one. Run as the sidecar's role.

-- create_wal_publication: create the publication unless it exists. The slot is created later: PostgreSQL looks the
-- publication up as it was when a change was written, and before version 18 fails if it was not there.
create or replace function pgtrickle_internal.create_wal_publication() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from pg_publication p where p.pubname = 'pgtrickle') then
        execute format('create publication pgtrickle with (publish = %L, publish_via_partition_root = false%s)',
            'insert, update, delete, truncate', case when current_setting('server_version_num')::integer >= 180000
                then ', publish_generated_columns = stored' else '' end);
    end if;
end
$$;

-- publish_source: let the publication contain a source with its partitions and children. Partitions are published with
-- their table; as members of the publication, they cannot be made unlogged either, so those that we may add are added.
-- Commit before the source is handed over. Locks: SHARE UPDATE EXCLUSIVE on the source, waiting only for a moment.
create or replace function pgtrickle_internal.publish_source(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms'
as $$
declare
    relation_id oid;
begin
    for relation_id in
        select t.id from pgtrickle_internal.tree_of(source) t(id) join pg_class c on c.oid = t.id
        join pg_publication p on p.pubname = 'pgtrickle' and not p.puballtables
        where not exists (select from pg_publication_rel r where r.prpubid = p.oid and r.prrelid = t.id)
            and case when t.id <> source and c.relispartition
                then c.relkind = 'r' and pg_has_role(p.pubowner, 'USAGE') and pg_has_role(c.relowner, 'USAGE')
                else pgtrickle_internal.published_as(source) is null end
        order by t.id <> source, 1
    loop
        execute format('alter publication pgtrickle add table only %s', pgtrickle_internal.printed(relation_id));
    end loop;
end
$$;

-- unpublish_unused: take the tables out of the publication that no source needs any longer: PostgreSQL refuses updates
-- of a published table that loses its replica identity. Skips tables that are busy.
create or replace function pgtrickle_internal.unpublish_unused() returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '50ms'
as $$
declare
    relation_id oid;
begin
    for relation_id in
        select r.prrelid from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
        where p.pubname = 'pgtrickle' and pg_has_role(p.pubowner, 'USAGE') and not exists (
            select from pgtrickle.pgt_sources s where (s.capture = 'wal' or pgtrickle_internal.wanted_capture(s.source_relid) <> 'trigger')
                and r.prrelid in (select pgtrickle_internal.tree_of(s.source_relid)))
    loop
        begin
            execute format('alter publication pgtrickle drop table only %s', pgtrickle_internal.printed(relation_id));
        exception when lock_not_available or insufficient_privilege then
            null;
        end;
    end loop;
end
$$;

-- note_capture: show in the catalog how a source is captured.
create or replace function pgtrickle_internal.note_capture(source oid, way text) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_dependencies d set cdc_mode = way
    where d.source_relid = source and d.source_type = 'table' and d.cdc_mode is distinct from way
$$;

-- postpone_hand_over: note what an attempt to hand a source over ran into, and when to try again.
create or replace function pgtrickle_internal.postpone_hand_over(source oid, why text) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_sources s set wal_attempts = s.wal_attempts + 1, wal_note = why,
        wal_retry_at = clock_timestamp() + pgtrickle_internal.retry_pause(s.wal_attempts)
    where s.source_relid = source
$$;

-- enter_wal: capture a source from the log from now on. Returns null if that was done, else the reason why not; then
-- nothing was changed. Dropping the triggers waits for every transaction that uses the table, for a moment.
-- Locks: ACCESS EXCLUSIVE on the source; its row in pgt_sources.
create or replace function pgtrickle_internal.enter_wal(source oid) returns text
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning set lock_timeout = '50ms'
as $$
declare
    intact bigint[] := pgtrickle_internal.intact_readers(source);
    captured pgtrickle.pgt_sources;
    obstacle text;
begin
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for update nowait;
    if not found or captured.capture = 'wal' or captured.trigger_level = 'none' then
        return null;
    end if;
    obstacle := coalesce(pgtrickle_internal.capture_gap(source), pgtrickle_internal.slot_gap(), (
        select 'its triggers are not complete' from pgtrickle.pgt_waiting w where w.source_relid = source limit 1),
        (select o.obstacle from pgtrickle_internal.wal_obstacle(source) o),
        case when pgtrickle_internal.published_as(source) is null then 'it is not in the publication pgtrickle' end);
    if obstacle is not null then
        return obstacle;
    end if;
    execute format('drop function pgtrickle_changes.capture_%s() cascade', source);
    -- from here on nobody writes to the table, and whoever wrote to it has ended
    if exists (select from pgtrickle_internal.wal_obstacle(source)) or pgtrickle_internal.published_as(source) is null then
        raise exception '%', format('%s was altered in the meantime', pgtrickle_internal.printed(source)) using
            errcode = 'lock_not_available', hint = 'Try again.';
    end if;
    update pgtrickle.pgt_sources s set capture = 'wal', wal_from = pg_current_wal_insert_lsn(), wal_until = null,
        wal_publication = pgtrickle_internal.published_as(source)::text, wal_attempts = 0, wal_retry_at = null, wal_note = null
    where s.source_relid = source;
    perform pgtrickle_internal.note_capture(source, 'wal');
    perform pgtrickle_internal.note_own_triggers(source, intact, false);
    return null;
exception when lock_not_available then
    return pgtrickle_internal.who_blocks(source);
end
$$;

-- leave_wal: capture a source by triggers from now on. What was written before is still decoded from the log. Returns
-- null if that was done, else the reason why not. Locks: those of capture_source.
create or replace function pgtrickle_internal.leave_wal(source oid) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    intact bigint[] := pgtrickle_internal.intact_readers(source);
begin
    update pgtrickle.pgt_sources s set wal_until = 'FFFFFFFF/FFFFFFFF'
    where s.source_relid = source and s.capture = 'wal' and s.wal_until is null;
    if not found then
        return null;
    end if;
    perform pgtrickle_internal.capture_source(source, '{}');
    perform pgtrickle_internal.note_own_triggers(source, intact, false);
    return null;
exception when lock_not_available then
    return pgtrickle_internal.who_blocks(source);
end
$$;

-- begin_leaving: note that the triggers of a source are about to be created, if it is captured from the log. If that
-- log is lost, its readers are loaded again, and there is nothing left to decode.
create or replace function pgtrickle_internal.begin_leaving(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    gap text;
begin
    if not exists (select from pgtrickle.pgt_sources s where s.source_relid = source and s.capture = 'wal') then
        return;
    end if;
    gap := pgtrickle_internal.wal_gap(source);
    if gap is null then
        update pgtrickle.pgt_sources s set wal_until = 'FFFFFFFF/FFFFFFFF'
        where s.source_relid = source and s.wal_until is null;
    else
        update pgtrickle.pgt_sources s set capture = 'trigger', wal_from = null, wal_until = null, wal_publication = null,
            wal_note = gap, wal_retry_at = greatest(s.wal_retry_at, clock_timestamp() + interval '10 s')
        where s.source_relid = source;
        perform pgtrickle_internal.note_capture(source, 'trigger');
    end if;
end
$$;

-- end_leaving: note that the triggers are complete: all writers have ended, and the next ones run them.
create or replace function pgtrickle_internal.end_leaving(source oid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_sources s set wal_until = pg_current_wal_insert_lsn(), wal_attempts = 0, wal_note = null,
        wal_retry_at = clock_timestamp() + interval '1 s'
    where s.source_relid = source and s.capture = 'wal' and s.wal_until = 'FFFFFFFF/FFFFFFFF'
$$;

-- settle_left: forget the log of sources that triggers capture again, once everything before has been decoded.
create or replace function pgtrickle_internal.settle_left() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    source oid;
begin
    for source in
        select s.source_relid from pgtrickle.pgt_sources s join pgtrickle.pgt_wal w on s.wal_until <= w.decoded_lsn
        where s.capture = 'wal' for update of s skip locked
    loop
        update pgtrickle.pgt_sources s set capture = 'trigger', wal_from = null, wal_until = null, wal_publication = null
        where s.source_relid = source;
        perform pgtrickle_internal.note_capture(source, 'trigger');
    end loop;
end
$$;

-- hand_overs: the sources whose capture should change now, and whether to the log.
create or replace function pgtrickle_internal.hand_overs() returns table (source oid, is_to_wal boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select s.source_relid, s.capture = 'trigger'
    from pgtrickle.pgt_sources s
    join pg_class c on c.oid = s.source_relid
    cross join lateral (select pgtrickle_internal.wanted_capture(s.source_relid)) w(wanted)
    where s.trigger_level <> 'none' and s.wal_until is null and coalesce(s.wal_retry_at <= clock_timestamp(), true)
        and case s.capture
            when 'trigger' then w.wanted in ('wal', 'auto') and not exists (select from pgtrickle_internal.wal_obstacle(s.source_relid))
                and not exists (select from pgtrickle.pgt_waiting p where p.source_relid = s.source_relid)
            else coalesce(w.wanted, 'trigger') = 'trigger' or exists (select from pgtrickle_internal.wal_obstacle(s.source_relid)) end
    order by 1
$$;
