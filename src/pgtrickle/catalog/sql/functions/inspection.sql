-- inspection: the stream tables and their states. Every role may read them. Error messages may quote data, so they
-- are only for the owner. The views run with the privileges of their owner and check the current role.

create or replace function pgtrickle_internal.may_see_errors(owner_id oid) returns boolean
language sql stable as $$
    select pg_catalog.pg_has_role(owner_id, 'USAGE') or pg_catalog.pg_has_role(pgtrickle.sidecar_role(), 'USAGE')
$$;

-- Errors are only for the current owner of the table; in a copy, whose OIDs mean other tables, for the sidecar's role.
create or replace view pgtrickle.visible_history as
select h.refresh_id, h.pgt_id, h.data_timestamp, h.start_time, h.end_time, h.action, h.status,
    h.rows_inserted, h.rows_deleted, h.delta_row_count, h.duration_ms,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then h.reason end as reason,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then h.error_message end as error_message, h.initiated_by
from pgtrickle.pgt_refresh_history h join pgtrickle.pgt_stream_tables s on s.pgt_id = h.pgt_id
left join pg_catalog.pg_class c on c.oid = s.pgt_relid
cross join lateral (
    select case when not (select pgtrickle.is_copy()) then coalesce(c.relowner, s.pgt_owner) end) o(owner_id);
comment on view pgtrickle.visible_history is
    'The refresh history of all stream tables. Everyone may read it; reasons and error messages are shown '
    'only to the owner of the stream table and to the role that owns pgtrickle.';

create or replace view pgtrickle.stream_tables_info as
select s.pgt_id, coalesce(n.nspname, s.pgt_schema) as pgt_schema, coalesce(c.relname, s.pgt_name) as pgt_name,
    pg_catalog.pg_get_userbyid(coalesce(c.relowner, s.pgt_owner)) as owner, s.defining_query, s.schedule,
    s.refresh_mode, s.effective_refresh_mode, s.downgrade_reason, s.status, s.is_populated,
    s.data_timestamp, now() - s.data_timestamp as staleness, s.last_refresh_at, s.consecutive_errors,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then s.last_error end as last_error, s.retry_at,
    s.needs_reinit, case when pgtrickle_internal.may_see_errors(o.owner_id) then s.reinit_reason end as reinit_reason,
    s.refresh_tier, s.cdc_mode, s.append_only, s.pooler_compatibility_mode, s.created_at,
    s.refresh_timeout, s.on_divergence, s.repairs, s.last_repair_at
from pgtrickle.pgt_stream_tables s
left join pg_catalog.pg_class c on c.oid = s.pgt_relid and not (select pgtrickle.is_copy())
left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral (
    select case when not (select pgtrickle.is_copy()) then coalesce(c.relowner, s.pgt_owner) end) o(owner_id);
comment on view pgtrickle.stream_tables_info is
    'All stream tables with their definitions and states. Everyone may read it; error messages are shown '
    'only to the owner of the stream table and to the role that owns pgtrickle.';

create or replace function pgtrickle.pgt_status() returns table (
    name text, status text, refresh_mode text, is_populated boolean, consecutive_errors integer,
    schedule text, data_timestamp timestamptz, staleness interval)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('%I.%I', i.pgt_schema, i.pgt_name), i.status, i.refresh_mode, i.is_populated,
        i.consecutive_errors, i.schedule, i.data_timestamp, i.staleness
    from pgtrickle.stream_tables_info i order by 1
$$;
comment on function pgtrickle.pgt_status() is
    'The state of every stream table. Call it with SELECT ... FROM. Everyone may call it.';

create or replace function pgtrickle.get_refresh_history(name text, max_rows integer default 20) returns table (
    refresh_id bigint, data_timestamp timestamptz, start_time timestamptz, end_time timestamptz, action text,
    status text, rows_inserted bigint, rows_deleted bigint, duration_ms double precision, error_message text)
language sql stable
as $$
    select h.refresh_id, h.data_timestamp, h.start_time, h.end_time, h.action, h.status, h.rows_inserted,
        h.rows_deleted, h.duration_ms, h.error_message
    from pgtrickle.visible_history h
    where h.pgt_id = pgtrickle_internal.stream_table(name)
    order by h.refresh_id desc limit greatest(max_rows, 0)
$$;
comment on function pgtrickle.get_refresh_history(text, integer) is
    'The latest refreshes of a stream table, newest first. Call it with SELECT ... FROM. Everyone may '
    'call it; only the owner of the stream table sees error messages.';

create or replace function pgtrickle.get_staleness(name text) returns double precision
language sql stable
as $$
    select extract(epoch from i.staleness)::double precision
    from pgtrickle.stream_tables_info i where i.pgt_id = pgtrickle_internal.stream_table(name)
$$;
comment on function pgtrickle.get_staleness(text) is
    'How many seconds the data of a stream table lags behind. Call it with SELECT. Everyone may call it.';

create or replace function pgtrickle.explain_refresh_mode(name text) returns table (
    configured_mode text, effective_mode text, downgrade_reason text)
language sql stable
as $$
    select i.refresh_mode, i.effective_refresh_mode, i.downgrade_reason
    from pgtrickle.stream_tables_info i where i.pgt_id = pgtrickle_internal.stream_table(name)
$$;
comment on function pgtrickle.explain_refresh_mode(text) is
    'The configured and the effective refresh mode of a stream table, and why they differ. Call it with '
    'SELECT ... FROM. Everyone may call it.';

create or replace function pgtrickle.list_sources(name text) returns table (
    source_table text, source_oid oid, source_type text, cdc_mode text, columns_used text[])
language sql stable
as $$
    select coalesce(case when not (select pgtrickle.is_copy()) then pgtrickle_internal.printed(d.source_relid) end,
            case d.source_type when 'function' then d.source_name
                else pg_catalog.format('%I.%I', d.source_schema, d.source_name) end),
        d.source_relid, d.source_type, d.cdc_mode, d.columns_used
    from pgtrickle.pgt_dependencies d
    where d.pgt_id = pgtrickle_internal.stream_table(name)
    order by d.source_type, 1
$$;
comment on function pgtrickle.list_sources(text) is
    'The tables, views and functions that a stream table reads. Call it with SELECT ... FROM. Everyone '
    'may call it.';

-- change_buffer_sizes: the number of captured changes that each stream table has not processed yet, and the size
-- of their buffers.
-- Runs as the sidecar's role, because no other role may read the buffers; it only returns numbers. Each buffer is
-- read in a subtransaction that is rolled back. Otherwise its lock would last as long as the caller's transaction,
-- and the buffer could not be emptied or altered until then.
create or replace function pgtrickle.change_buffer_sizes() returns table (
    stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint, buffer_bytes bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    reading record;
begin
    if pgtrickle.is_copy() then
        -- changes of the original database mean nothing in a copy
        return;
    end if;
    for reading in
        select pgtrickle_internal.printed(s.pgt_relid) as reader, pgtrickle_internal.printed(d.source_relid) as source,
            d.source_relid as source_id, d.cdc_mode as mode,
            case when d.source_type = 'stream_table' then coalesce(s.upstream_frontier, s.frontier)
                else s.frontier end as seen
        from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
        join pgtrickle.pgt_sources c on c.source_relid = d.source_relid
        where d.source_type not in ('view', 'function')
        order by 1, 2
    loop
        stream_table := reading.reader;
        source_table := reading.source;
        source_oid := reading.source_id;
        cdc_mode := reading.mode;
        begin
            execute format(
                'select count(*) from (select xid, weight from pgtrickle_changes.changes_%1$s_0 union all '
                'select xid, weight from pgtrickle_changes.changes_%1$s_1) b '
                'where $1 is null or (b.xid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(b.xid, $1))',
                reading.source_id)
            into pending_rows using reading.seen;
            buffer_bytes := pg_total_relation_size(format('pgtrickle_changes.changes_%s_0', reading.source_id)::regclass)
                + pg_total_relation_size(format('pgtrickle_changes.changes_%s_1', reading.source_id)::regclass);
            raise exception using errcode = 'PT001';
        exception when sqlstate 'PT001' then
            null;
        end;
        return next;
    end loop;
end
$$;
comment on function pgtrickle.change_buffer_sizes() is
    'The number of captured changes that each stream table has yet to process, and the size of the change '
    'buffers. Call it with SELECT ... FROM. Everyone may call it.';

-- trigger_inventory: every capture trigger that should exist, and whether it exists and fires.
create or replace function pgtrickle.trigger_inventory() returns table (
    source_table text, source_oid oid, table_name text, trigger_name text, event text, is_present boolean,
    is_enabled boolean, fires_for_replication boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select pgtrickle_internal.printed(s.source_relid), s.source_relid, pgtrickle_internal.printed(w.relation_id), w.trigger_name::text,
        w.event, w.trigger_id is not null, coalesce(w.enabled <> 'D', false), coalesce(w.enabled in ('A', 'R'), false)
    from pgtrickle.pgt_sources s
    cross join lateral pgtrickle_internal.wanted_triggers(s.source_relid,
        case s.trigger_level when 'none' then 'none' else pgtrickle_internal.trigger_level(s.source_relid) end) w
    where exists (select from pg_class c where c.oid = s.source_relid) and not (select pgtrickle.is_copy())
    order by 1, 3, 5
$$;
comment on function pgtrickle.trigger_inventory() is
    'Every capture trigger that should exist, and whether it exists and fires. Call it with SELECT ... '
    'FROM. Everyone may call it.';
