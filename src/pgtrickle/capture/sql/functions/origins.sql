-- origins: what other databases ask of this one, in which they follow tables. Run as the sidecar's role.

-- describe_origin: what a table is made of, for a stand-in in another database; null if there is none. `version` changes
-- whenever the catalog rows of the table, its partitions and its triggers are written: then its rows may have changed without
-- a trace, for example with a partition that was detached. `gap` says what is wrong with its capture.
create or replace function pgtrickle_internal.describe_origin(schema_name name, table_name name) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object('relation', c.oid::bigint, 'kind', c.relkind,
        'version', (
            select bit_xor(v.version)::text from pgtrickle_internal.tree_of(c.oid) t(id)
            cross join lateral pgtrickle_internal.source_ground_version(t.id) v),
        'gap', case when exists (select from pgtrickle.pgt_sources s where s.source_relid = c.oid and s.trigger_level <> 'none')
            then pgtrickle_internal.capture_gap(c.oid) end,
        'is_filtered', row_security_active(c.oid), 'may_read', has_table_privilege(c.oid, 'SELECT'),
        'columns', (
            select coalesce(jsonb_agg(jsonb_build_object('name', d.column_name, 'number', d.number, 'type', d.type,
                'collation_schema', d.collation_schema, 'collation_name', d.collation_name,
                'is_never_null', pgtrickle_internal.is_never_null(c.oid, d.column_name)) order by d.number), '[]')
            from pgtrickle_internal.column_types(c.oid) d),
        'keys', (
            select coalesce(jsonb_agg(to_jsonb(k.column_names) order by k.is_primary desc, k.index_id), '[]')
            from pgtrickle_internal.unique_keys(c.oid) k),
        'indexes', (
            select coalesce(jsonb_agg(to_jsonb(i.column_names) order by i.column_names), '[]')
            from pgtrickle_internal.plain_indexes(c.oid) i))
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = schema_name and c.relname = table_name
$$;

-- follow_origin: capture these columns of a table for another database. Returns null if it is captured now, else the
-- sessions that prevent it. A reader that asks for more columns than before has to read all rows again.
create or replace function pgtrickle_internal.follow_origin(reader uuid, label text, source oid, names name[]) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    numbers smallint[] := array(select a.attnum from pg_attribute a
        where a.attrelid = source and a.attname = any (names) and not a.attisdropped order by a.attnum);
    obstacle text;
begin
    perform pgtrickle_internal.check_not_copy();
    perform pgtrickle_internal.settle_identity();
    insert into pgtrickle.pgt_remote_readers as r (reader, source_relid, label, columns) values (reader, source, label, names)
    on conflict on constraint pgt_remote_readers_pkey do update
    set label = excluded.label, columns = excluded.columns, seen_at = clock_timestamp(), frontier = null;
    obstacle := pgtrickle_internal.try_capture(source, numbers, interval '50 ms');
    return coalesce(obstacle, pgtrickle_internal.unreplicated(source));
end
$$;

-- confirm_origins: note how far another database has followed its tables. What it has passed need not be kept.
create or replace function pgtrickle_internal.confirm_origins(reader uuid, sources oid[], seen pg_snapshot) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_remote_readers r set frontier = seen, seen_at = clock_timestamp()
    where r.reader = confirm_origins.reader and r.source_relid = any (sources)
$$;

-- leave_origins: keep nothing any more for another database, except for these tables.
create or replace function pgtrickle_internal.leave_origins(reader uuid, except_for oid[]) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    delete from pgtrickle.pgt_remote_readers r
    where r.reader = leave_origins.reader and r.source_relid <> all (except_for)
$$;

-- drop_lost_readers: forget databases that have not been seen for a week: what is kept for them would grow without
-- bound. One that comes back reads all rows again.
create or replace function pgtrickle_internal.drop_lost_readers() returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    delete from pgtrickle.pgt_remote_readers r where r.seen_at < clock_timestamp() - interval '7 days'
$$;

-- mark_missed: tell databases that follow a source that changes may have been missed: they read all of its rows again.
create or replace function pgtrickle_internal.mark_missed(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pgtrickle.pgt_remote_readers r where r.source_relid = source) then
        execute format('insert into pgtrickle_changes.changes_%s_%s (weight) values (0)', source,
            (select s.active_buffer from pgtrickle.pgt_sources s where s.source_relid = source));
        perform pgtrickle_internal.touch(source);
    end if;
end
$$;

-- hold_brokerage: hold the place of the broker of this database, unless another process has held it within `lease`. Records
-- what was read since the last call. Returns whether the caller holds it.
create or replace function pgtrickle_internal.hold_brokerage(
    holder uuid, lease interval, sources bigint[], readers bigint[], pending bigint[], ticks bigint[]
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into pgtrickle.pgt_broker as b (holder) values (hold_brokerage.holder)
    on conflict (is_only) do update set holder = excluded.holder, renewed_at = clock_timestamp(),
        held_since = case when b.holder = excluded.holder then b.held_since else clock_timestamp() end
    where b.holder = excluded.holder or b.renewed_at < clock_timestamp() - lease;
    if not found then
        return false;
    end if;
    insert into pgtrickle.pgt_broker_entries as e (source_relid, readers, pending_rows, last_updated_tick)
    select n.source::oid, n.readers, n.pending, n.tick from unnest(sources, readers, pending, ticks) n(source, readers, pending, tick)
    on conflict (source_relid) do update set readers = excluded.readers, pending_rows = excluded.pending_rows,
        last_updated_tick = excluded.last_updated_tick, updated_at = clock_timestamp();
    delete from pgtrickle.pgt_broker_entries e where not exists (
        select from pgtrickle.pgt_remote_readers r where r.source_relid = e.source_relid);
    return true;
end
$$;

-- leave_brokerage: let another process be the broker.
create or replace function pgtrickle_internal.leave_brokerage(holder uuid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$ delete from pgtrickle.pgt_broker b where b.holder = leave_brokerage.holder $$;

-- touched_origins: which of these sources were written by transactions that a snapshot has not seen.
create or replace function pgtrickle_internal.touched_origins(sources oid[], seen pg_snapshot) returns oid[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select array(
        select distinct t.source from (
            select xid, source from pgtrickle_changes.touched_0
            union all
            select xid, source from pgtrickle_changes.touched_1
        ) t
        where t.source = any (sources) and t.xid >= pg_snapshot_xmin(seen) and not pg_visible_in_snapshot(t.xid, seen))
$$;
