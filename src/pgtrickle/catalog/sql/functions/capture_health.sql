-- capture_health: how the changes of each source are captured, and what is wrong with it.

drop function if exists pgtrickle.check_cdc_health();
create or replace function pgtrickle.check_cdc_health() returns table (
    source_relid bigint, source_table text, cdc_mode text, slot_name text, lag_bytes bigint, confirmed_lsn text,
    alert text, reason text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with triggers as materialized (
        select t.source_oid, bool_and(t.is_present) as are_present, bool_and(t.is_enabled) as are_enabled
        from pgtrickle.trigger_inventory() t group by t.source_oid
    ), buffers as materialized (
        select r.source, bool_and(r.is_filled is not null) as are_present
        from pgtrickle_internal.readings(null) r group by r.source
    ), sources as (
        select distinct d.source_relid, d.cdc_mode, d.source_schema, d.source_name
        from pgtrickle.pgt_dependencies d where d.source_type not in ('view', 'function')
    )
    select s.source_relid::bigint, case when c.oid is null then format('%I.%I', s.source_schema, s.source_name)
            else format('%I.%I', n.nspname, c.relname) end, s.cdc_mode, l.slot::text,
        pg_wal_lsn_diff(pg_current_wal_lsn(), l.confirmed_flush_lsn)::bigint, l.confirmed_flush_lsn::text,
        case when (select pgtrickle.is_copy()) then 'the database is a copy'
            when c.oid is null then 'the source was dropped'
            when exists (select from pgtrickle.pgt_waiting w where w.source_relid = s.source_relid) then 'it waits for its triggers'
            when b.are_present is false then 'a change buffer is missing'
            when t.are_present is false then 'a trigger is missing'
            when t.are_enabled is false then 'a trigger is disabled'
            when s.cdc_mode = 'wal' then pgtrickle_internal.wal_gap(s.source_relid)
            when pgtrickle_internal.wanted_capture(s.source_relid) = 'wal' then pgtrickle_internal.why_triggers(s.source_relid) end,
        coalesce(pgtrickle_internal.why_triggers(s.source_relid), 'the log is read by SQL: ' || l.reader_note)
    from sources s
    left join pg_class c on c.oid = s.source_relid and not (select pgtrickle.is_copy())
    left join pg_namespace n on n.oid = c.relnamespace
    left join triggers t on t.source_oid = s.source_relid
    left join buffers b on b.source = s.source_relid
    left join (
        select w.slot, r.confirmed_flush_lsn, w.reader_note from pgtrickle.pgt_wal w left join pg_replication_slots r on r.slot_name = w.slot
    ) l on s.cdc_mode = 'wal'
    order by 2
$$;
comment on function pgtrickle.check_cdc_health() is
    E'How the changes of each source are captured, and what is wrong with it. Call it with SELECT ... FROM. '
    'Everyone may call it.\n'
    '\nsource_relid: The OID of the source.'
    '\nsource_table: The source.'
    '\ncdc_mode: How its changes are captured: trigger, wal, or compare for materialized views and foreign tables.'
    '\nslot_name: The replication slot; null without one.'
    '\nlag_bytes: How far the slot lags; null without one.'
    '\nconfirmed_lsn: How far the slot has been read; null without one.'
    '\nalert: What is wrong; null if nothing is. The sidecar repairs missing triggers and buffers by itself.'
    '\nreason: Why triggers capture it although a stream table asks for wal or auto, and what to do about it. If the log is used: '
    'why the sidecar reads it by SQL and not through a replication connection; null if it does not.';

create or replace view pgtrickle.pgt_cdc_status as
select i.pgt_schema, i.pgt_name, d.source_relid, coalesce(c.relname::text, d.source_name) as source_name,
    coalesce(n.nspname, d.source_schema) as source_schema, d.cdc_mode, w.slot::text as slot_name,
    w.decoded_lsn as decoder_confirmed_lsn, null::timestamptz as transition_started_at
from pgtrickle.pgt_dependencies d
join pgtrickle.stream_tables_info i on i.pgt_id = d.pgt_id
left join pg_catalog.pg_class c on c.oid = d.source_relid and not (select pgtrickle.is_copy())
left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pgtrickle.pgt_wal w on d.cdc_mode = 'wal'
where d.source_type not in ('view', 'function');
comment on view pgtrickle.pgt_cdc_status is
    'How the changes of each source of each stream table are captured. Everyone may read it.';
comment on column pgtrickle.pgt_cdc_status.pgt_schema is 'The schema of the stream table.';
comment on column pgtrickle.pgt_cdc_status.pgt_name is 'The name of the stream table.';
comment on column pgtrickle.pgt_cdc_status.source_relid is 'The OID of the source.';
comment on column pgtrickle.pgt_cdc_status.source_name is 'The name of the source.';
comment on column pgtrickle.pgt_cdc_status.source_schema is 'Its schema.';
comment on column pgtrickle.pgt_cdc_status.cdc_mode is
    'How its changes are captured: trigger, wal, or compare for materialized views and foreign tables.';
comment on column pgtrickle.pgt_cdc_status.slot_name is 'The replication slot; null without one.';
comment on column pgtrickle.pgt_cdc_status.decoder_confirmed_lsn is 'How far the slot has been read; null without one.';
comment on column pgtrickle.pgt_cdc_status.transition_started_at is
    'When capture began to move from triggers to a slot; null if it does not.';
