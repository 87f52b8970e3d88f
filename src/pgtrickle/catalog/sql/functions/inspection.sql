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
    case when pgtrickle_internal.may_see_errors(o.owner_id) then h.error_message end as error_message, h.initiated_by,
    h.read_ms, h.compute_ms, h.apply_ms
from pgtrickle.pgt_refresh_history h join pgtrickle.pgt_stream_tables s on s.pgt_id = h.pgt_id
left join pg_catalog.pg_class c on c.oid = s.pgt_relid
cross join lateral (
    select case when not (select pgtrickle.is_copy()) then coalesce(c.relowner, s.pgt_owner) end) o(owner_id);
comment on view pgtrickle.visible_history is
    'The refresh history of all stream tables. Everyone may read it; reasons and error messages are shown '
    'only to the owner of the stream table and to the role that owns pgtrickle.';
comment on column pgtrickle.visible_history.refresh_id is 'A number that grows with each refresh.';
comment on column pgtrickle.visible_history.pgt_id is 'The stream table, as in stream_tables_info.';
comment on column pgtrickle.visible_history.data_timestamp is
    'The time of the snapshot that the refresh read.';
comment on column pgtrickle.visible_history.start_time is 'When it began.';
comment on column pgtrickle.visible_history.end_time is 'When it ended.';
comment on column pgtrickle.visible_history.action is
    'What it did: DIFFERENTIAL, FULL, REINITIALIZE (a load after something it relies on has changed) or NO_DATA.';
comment on column pgtrickle.visible_history.status is 'COMPLETED or FAILED.';
comment on column pgtrickle.visible_history.rows_inserted is
    'Rows written to the stream table; an updated row counts as one inserted and one deleted.';
comment on column pgtrickle.visible_history.rows_deleted is 'Rows removed from the stream table.';
comment on column pgtrickle.visible_history.delta_row_count is
    'Captured change rows that the refresh read.';
comment on column pgtrickle.visible_history.duration_ms is 'How long it took, in milliseconds.';
comment on column pgtrickle.visible_history.reason is 'Why it did what it did.';
comment on column pgtrickle.visible_history.error_message is 'Why it failed.';
comment on column pgtrickle.visible_history.initiated_by is 'Who asked for it.';
comment on column pgtrickle.visible_history.read_ms is
    'How long it read changes and the rows they affect, in milliseconds; null if that was not measured.';
comment on column pgtrickle.visible_history.compute_ms is
    'How long Spark, or PostgreSQL in a full refresh, computed. Large refreshes also read meanwhile.';
comment on column pgtrickle.visible_history.apply_ms is
    'How long it wrote the result to the stream table. The rest of duration_ms are decisions and checks.';

create or replace view pgtrickle.stream_tables_info as
select s.pgt_id, coalesce(n.nspname, s.pgt_schema) as pgt_schema, coalesce(c.relname, s.pgt_name) as pgt_name,
    pg_catalog.pg_get_userbyid(coalesce(c.relowner, s.pgt_owner)) as owner, s.defining_query, s.schedule,
    s.refresh_mode, s.effective_refresh_mode, s.downgrade_reason, s.status, s.is_populated,
    f.shown_until as data_timestamp, pgtrickle_internal.snapshot_time() - f.shown_until as staleness,
    s.last_refresh_at, s.consecutive_errors,
    case when pgtrickle_internal.may_see_errors(o.owner_id) then s.last_error end as last_error, s.retry_at,
    s.needs_reinit, case when pgtrickle_internal.may_see_errors(o.owner_id) then s.reinit_reason end as reinit_reason,
    s.refresh_tier, s.cdc_mode, s.append_only, s.pooler_compatibility_mode, s.created_at,
    s.refresh_timeout, s.on_divergence, s.repairs, s.last_repair_at, s.keep_changes, s.auxiliary_results
from pgtrickle.pgt_stream_tables s
left join pg_catalog.pg_class c on c.oid = s.pgt_relid and not (select pgtrickle.is_copy())
left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral (
    select case when not (select pgtrickle.is_copy()) then coalesce(c.relowner, s.pgt_owner) end) o(owner_id)
-- computed once for both columns that use it, and only if one of them is read
cross join lateral (select pgtrickle_internal.shown_until(s.pgt_id, (select pgtrickle.is_copy())) offset 0) f(shown_until);
comment on view pgtrickle.stream_tables_info is
    'All stream tables with their definitions and states. Everyone may read it; error messages are shown '
    'only to the owner of the stream table and to the role that owns pgtrickle.';
comment on column pgtrickle.stream_tables_info.pgt_id is
    'The number of the stream table in the catalog of pgtrickle.';
comment on column pgtrickle.stream_tables_info.pgt_schema is 'Its schema.';
comment on column pgtrickle.stream_tables_info.pgt_name is 'Its name.';
comment on column pgtrickle.stream_tables_info.owner is 'The role that owns it.';
comment on column pgtrickle.stream_tables_info.defining_query is 'Its query, as PostgreSQL prints it.';
comment on column pgtrickle.stream_tables_info.schedule is 'When it is refreshed.';
comment on column pgtrickle.stream_tables_info.refresh_mode is
    'AUTO, DIFFERENTIAL or FULL, as configured.';
comment on column pgtrickle.stream_tables_info.effective_refresh_mode is
    'How it is refreshed: DIFFERENTIAL or FULL; null until it has been analysed.';
comment on column pgtrickle.stream_tables_info.downgrade_reason is
    'Why it is refreshed in full although the mode is AUTO.';
comment on column pgtrickle.stream_tables_info.status is 'INITIALIZING, ACTIVE, SUSPENDED or ERROR.';
comment on column pgtrickle.stream_tables_info.is_populated is 'Whether it has been loaded.';
comment on column pgtrickle.stream_tables_info.data_timestamp is
    'The time before which it shows every committed change.';
comment on column pgtrickle.stream_tables_info.staleness is 'The age of the oldest change that it does not show yet; 0 if there is none.';
comment on column pgtrickle.stream_tables_info.last_refresh_at is 'When it was last refreshed.';
comment on column pgtrickle.stream_tables_info.consecutive_errors is
    'How many refreshes in a row have failed.';
comment on column pgtrickle.stream_tables_info.last_error is 'The error of the last failed refresh.';
comment on column pgtrickle.stream_tables_info.retry_at is 'When a failed refresh is tried again.';
comment on column pgtrickle.stream_tables_info.needs_reinit is 'Whether the next refresh loads it again.';
comment on column pgtrickle.stream_tables_info.reinit_reason is 'Why it is loaded again.';
comment on column pgtrickle.stream_tables_info.refresh_tier is 'hot, warm, cold or frozen.';
comment on column pgtrickle.stream_tables_info.cdc_mode is
    'How changes of its sources are captured, as configured.';
comment on column pgtrickle.stream_tables_info.append_only is
    'Whether rows are only ever added to it; switched off by the first refresh that removes or changes one.';
comment on column pgtrickle.stream_tables_info.pooler_compatibility_mode is
    'Whether it is refreshed without prepared statements and alerts.';
comment on column pgtrickle.stream_tables_info.created_at is 'When it was created.';
comment on column pgtrickle.stream_tables_info.refresh_timeout is
    'The time limit of a refresh, in seconds; 0 is no limit, null the default of the sidecar.';
comment on column pgtrickle.stream_tables_info.on_divergence is
    'What happens if it does not hold the rows it should: repair or stop.';
comment on column pgtrickle.stream_tables_info.repairs is
    'How often it was repaired because its rows differed from its query.';
comment on column pgtrickle.stream_tables_info.last_repair_at is 'When that last happened.';
comment on column pgtrickle.stream_tables_info.keep_changes is
    'How long the changes of its rows are kept, and how many; null if they are not.';
comment on column pgtrickle.stream_tables_info.auxiliary_results is
    'Whether inner results of its query are kept beside it: auto, always or never.';

create or replace function pgtrickle.pgt_status() returns table (
    name text, status text, refresh_mode text, is_populated boolean, consecutive_errors integer,
    schedule text, data_timestamp timestamptz, staleness interval)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('%I.%I', i.pgt_schema, i.pgt_name), i.status, i.refresh_mode, i.is_populated,
        i.consecutive_errors, i.schedule, f.shown_until, pgtrickle_internal.snapshot_time() - f.shown_until
    from pgtrickle.stream_tables_info i
    left join pgtrickle_internal.shown_times(null) f on f.pgt_id = i.pgt_id
    order by 1
$$;
comment on function pgtrickle.pgt_status() is
    E'The state of every stream table. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\nname: The stream table, with its schema.'
    '\nstatus: INITIALIZING, ACTIVE, SUSPENDED or ERROR.'
    '\nrefresh_mode: AUTO, DIFFERENTIAL or FULL, as configured.'
    '\nis_populated: Whether it has been loaded.'
    '\nconsecutive_errors: How many refreshes in a row have failed.'
    '\nschedule: When it is refreshed.'
    '\ndata_timestamp: The time before which it shows every committed change.'
    '\nstaleness: The age of the oldest change that it does not show yet; 0 if there is none.';

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
    E'The latest refreshes of a stream table, newest first. Call it with SELECT ... FROM. Everyone may '
    'call it; only the owner of the stream table sees error messages.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nmax_rows: How many refreshes to return at most.'
    '\nrefresh_id: A number that grows with each refresh.'
    '\ndata_timestamp: The time of the snapshot that the refresh read.'
    '\nstart_time: When it began.'
    '\nend_time: When it ended.'
    '\naction: What it did: DIFFERENTIAL, FULL, REINITIALIZE (a load after something it relies on has '
    'changed) or NO_DATA.'
    '\nstatus: COMPLETED or FAILED.'
    '\nrows_inserted: Rows written to the stream table; an updated row counts as one inserted and one '
    'deleted.'
    '\nrows_deleted: Rows removed from the stream table.'
    '\nduration_ms: How long it took, in milliseconds.'
    '\nerror_message: Why it failed.';

create or replace function pgtrickle.get_staleness(name text) returns double precision
language sql stable
as $$
    select extract(epoch from i.staleness)::double precision
    from pgtrickle.stream_tables_info i where i.pgt_id = pgtrickle_internal.stream_table(name)
$$;
comment on function pgtrickle.get_staleness(text) is
    E'The age of the oldest change that a stream table does not show yet, in seconds; 0 if it shows all of '
    'them. Call it with SELECT. Everyone may call it.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';

create or replace function pgtrickle.explain_refresh_mode(name text) returns table (
    configured_mode text, effective_mode text, downgrade_reason text)
language sql stable
as $$
    select i.refresh_mode, i.effective_refresh_mode, i.downgrade_reason
    from pgtrickle.stream_tables_info i where i.pgt_id = pgtrickle_internal.stream_table(name)
$$;
comment on function pgtrickle.explain_refresh_mode(text) is
    E'The configured and the effective refresh mode of a stream table, and why they differ. Call it with '
    'SELECT ... FROM. Everyone may call it.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nconfigured_mode: AUTO, DIFFERENTIAL or FULL, as configured.'
    '\neffective_mode: How it is refreshed: DIFFERENTIAL or FULL; null until it has been analysed.'
    '\ndowngrade_reason: Why it is refreshed in full although the mode is AUTO.';

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
    E'The tables, views and functions that a stream table reads. Call it with SELECT ... FROM. Everyone '
    'may call it.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nsource_table: The source.'
    '\nsource_oid: Its OID.'
    '\nsource_type: What it is: table, stream_table, materialized_view, foreign_table, view or function.'
    '\ncdc_mode: How its changes are captured: trigger, wal or compare.'
    '\ncolumns_used: The columns that the query uses.';

-- change_buffer_sizes: the number of captured changes that each stream table has not processed yet, and the size
-- of their buffers.
create or replace function pgtrickle.change_buffer_sizes() returns table (
    stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint, buffer_bytes bigint)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with counts as materialized (
        select p.pgt_id, p.source, p.pending_rows from pgtrickle_internal.pending_counts(null) p
    ), sizes as materialized (
        select s.source, (select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
            where c.relname in (('changes_' || s.source || '_0')::name, ('changes_' || s.source || '_1')::name)
                and c.relnamespace = (select n.oid from pg_namespace n where n.nspname = 'pgtrickle_changes')) as bytes
        from (select distinct p.source from counts p) s
    )
    -- a stream table or a source that was dropped keeps its last name
    select format('%I.%I', coalesce(tn.nspname, s.pgt_schema), coalesce(t.relname, s.pgt_name)),
        format('%I.%I', coalesce(cn.nspname, d.source_schema), coalesce(c.relname, d.source_name)), p.source,
        d.cdc_mode, p.pending_rows, z.bytes
    from counts p
    join pgtrickle.pgt_stream_tables s on s.pgt_id = p.pgt_id
    join pgtrickle.pgt_dependencies d on d.pgt_id = p.pgt_id and d.source_relid = p.source
        and d.source_type not in ('view', 'function')
    join sizes z on z.source = p.source
    left join (pg_class t join pg_namespace tn on tn.oid = t.relnamespace) on t.oid = s.pgt_relid
    left join (pg_class c join pg_namespace cn on cn.oid = c.relnamespace) on c.oid = p.source
    order by 1, 2
$$;
comment on function pgtrickle.change_buffer_sizes() is
    E'The number of captured changes that each stream table has yet to process, and the size of the '
    'change buffers. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\nstream_table: The stream table.'
    '\nsource_table: One of its sources.'
    '\nsource_oid: The OID of the source.'
    '\ncdc_mode: How changes of the source are captured.'
    '\npending_rows: Captured changes that the stream table does not show yet.'
    '\nbuffer_bytes: The size of the change buffers of the source, which its stream tables share.';

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
    E'Every capture trigger that should exist, and whether it exists and fires. Call it with SELECT ... '
    'FROM. Everyone may call it.\n'
    '\nsource_table: The source.'
    '\nsource_oid: Its OID.'
    '\ntable_name: The table that has the trigger: the source itself, or one of its partitions or '
    'children.'
    '\ntrigger_name: The name of the trigger.'
    '\nevent: INSERT, UPDATE, DELETE or TRUNCATE.'
    '\nis_present: Whether the trigger exists.'
    '\nis_enabled: Whether it is enabled.'
    '\nfires_for_replication: Whether it also fires for rows that logical replication writes.';
