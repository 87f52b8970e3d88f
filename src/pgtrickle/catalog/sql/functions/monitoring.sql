-- monitoring: how stream tables fare, for dashboards and alert rules. Every role may read it; errors and reasons are
-- shown as in visible_history. Figures of refreshes are those of the kept history.

-- lateness: how old the data of each stream table is, and whether that is more than its schedule explains: later than
-- two intervals and a second. A calculated stream table follows its sources within seconds, or as often as those
-- that read it need; the moments of a cron schedule are known to the sidecar only, which records that it is stale.
create or replace function pgtrickle_internal.lateness()
returns table (pgt_id bigint, data_timestamp timestamptz, staleness interval, stale boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select s.pgt_id, f.shown_until, a.age,
        coalesce(e.since is not null or a.age > l.seconds * interval '1 second', false)
    from pgtrickle.pgt_stream_tables s
    left join pgtrickle.pgt_episodes e on e.event = 'stale_data' and e.subject = s.pgt_id
    left join pgtrickle_internal.shown_times(null) f on f.pgt_id = s.pgt_id
    cross join lateral (select pgtrickle_internal.snapshot_time() - f.shown_until) a(age)
    cross join lateral (select case s.refresh_tier when 'warm' then 2 when 'cold' then 10 else 1 end) t(factor)
    cross join lateral (select case
        -- most show everything, and the schedule does not matter then
        when a.age = interval '0' or s.schedule is null or s.refresh_tier = 'frozen' then null
        when s.schedule <> 'calculated' then 2 * t.factor * pgtrickle_internal.schedule_seconds(s.schedule) + 1
        when not exists (select from pgtrickle.pgt_dependencies d
            where d.source_relid = s.pgt_relid and d.source_type = 'stream_table') then greatest(5, 2 * t.factor + 1)
        end) l(seconds)
$$;

create or replace function pgtrickle.refresh_timeline(max_rows integer default 50) returns table (
    start_time timestamptz, stream_table text, action text, status text, rows_inserted bigint,
    rows_deleted bigint, duration_ms double precision, error_message text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select h.start_time, format('%I.%I', i.pgt_schema, i.pgt_name), h.action, h.status, h.rows_inserted,
        h.rows_deleted, h.duration_ms, h.error_message
    from (select v.* from pgtrickle.visible_history v order by v.refresh_id desc limit greatest(max_rows, 0)) h
    join pgtrickle.stream_tables_info i on i.pgt_id = h.pgt_id
    order by h.refresh_id desc
$$;
comment on function pgtrickle.refresh_timeline(integer) is
    E'The latest refreshes of all stream tables, newest first. Call it with SELECT ... FROM. Everyone may '
    'call it; only the owner of a stream table sees its error messages.\n'
    '\nmax_rows: How many refreshes to return at most.'
    '\nstart_time: When the refresh began.'
    '\nstream_table: The stream table.'
    '\naction: What it did: DIFFERENTIAL, FULL, REINITIALIZE (a load after something it relies on has '
    'changed) or NO_DATA.'
    '\nstatus: COMPLETED or FAILED.'
    '\nrows_inserted: Rows written to the stream table; an updated row counts as one inserted and one '
    'deleted.'
    '\nrows_deleted: Rows removed from the stream table.'
    '\nduration_ms: How long it took, in milliseconds.'
    '\nerror_message: Why it failed.';

create or replace view pgtrickle.pg_stat_stream_tables as
select i.pgt_id, i.pgt_schema, i.pgt_name, i.status, i.refresh_mode, i.effective_refresh_mode, i.is_populated,
    i.schedule, l.data_timestamp, l.staleness, l.stale, i.last_refresh_at,
    coalesce(h.total_refreshes, 0) as total_refreshes, coalesce(h.successful_refreshes, 0) as successful_refreshes,
    coalesce(h.failed_refreshes, 0) as failed_refreshes, coalesce(h.total_rows_inserted, 0) as total_rows_inserted,
    coalesce(h.total_rows_deleted, 0) as total_rows_deleted, h.avg_duration_ms, r.action as last_refresh_action,
    r.status as last_refresh_status, i.consecutive_errors, coalesce(d.cdc_modes, '{}') as cdc_modes
from pgtrickle.stream_tables_info i
left join pgtrickle_internal.lateness() l on l.pgt_id = i.pgt_id
left join (
    select g.pgt_id, count(*) as total_refreshes,
        count(*) filter (where g.status = 'COMPLETED') as successful_refreshes,
        count(*) filter (where g.status = 'FAILED') as failed_refreshes,
        sum(g.rows_inserted)::bigint as total_rows_inserted, sum(g.rows_deleted)::bigint as total_rows_deleted,
        avg(g.duration_ms) filter (where g.status = 'COMPLETED') as avg_duration_ms, max(g.refresh_id) as last_id
    from pgtrickle.pgt_refresh_history g group by g.pgt_id
) h on h.pgt_id = i.pgt_id
left join pgtrickle.pgt_refresh_history r on r.refresh_id = h.last_id
left join (
    select e.pgt_id, array_agg(distinct e.cdc_mode order by e.cdc_mode) as cdc_modes
    from pgtrickle.pgt_dependencies e where e.cdc_mode is not null group by e.pgt_id
) d on d.pgt_id = i.pgt_id;
comment on view pgtrickle.pg_stat_stream_tables is
    'The state of every stream table with figures of its kept refresh history. Everyone may read it.';
comment on column pgtrickle.pg_stat_stream_tables.pgt_id is 'The number of the stream table, as in stream_tables_info.';
comment on column pgtrickle.pg_stat_stream_tables.pgt_schema is 'Its schema.';
comment on column pgtrickle.pg_stat_stream_tables.pgt_name is 'Its name.';
comment on column pgtrickle.pg_stat_stream_tables.status is 'INITIALIZING, ACTIVE, SUSPENDED or ERROR.';
comment on column pgtrickle.pg_stat_stream_tables.refresh_mode is 'AUTO, DIFFERENTIAL or FULL, as configured.';
comment on column pgtrickle.pg_stat_stream_tables.effective_refresh_mode is
    'How it is refreshed: DIFFERENTIAL or FULL; null until it has been analysed.';
comment on column pgtrickle.pg_stat_stream_tables.is_populated is 'Whether it has been loaded.';
comment on column pgtrickle.pg_stat_stream_tables.schedule is 'When it is refreshed.';
comment on column pgtrickle.pg_stat_stream_tables.data_timestamp is 'The time before which it shows every committed change.';
comment on column pgtrickle.pg_stat_stream_tables.staleness is
    'The age of the oldest change that it does not show yet; 0 if there is none.';
comment on column pgtrickle.pg_stat_stream_tables.stale is
    'Whether that is more than its schedule explains. A quiet source makes nothing stale.';
comment on column pgtrickle.pg_stat_stream_tables.last_refresh_at is 'When it was last refreshed.';
comment on column pgtrickle.pg_stat_stream_tables.total_refreshes is 'Refreshes in the kept history.';
comment on column pgtrickle.pg_stat_stream_tables.successful_refreshes is 'How many of them succeeded.';
comment on column pgtrickle.pg_stat_stream_tables.failed_refreshes is 'How many of them failed.';
comment on column pgtrickle.pg_stat_stream_tables.total_rows_inserted is 'Rows that they wrote.';
comment on column pgtrickle.pg_stat_stream_tables.total_rows_deleted is 'Rows that they removed.';
comment on column pgtrickle.pg_stat_stream_tables.avg_duration_ms is
    'How long the successful ones took on average, in milliseconds.';
comment on column pgtrickle.pg_stat_stream_tables.last_refresh_action is 'What the last one did.';
comment on column pgtrickle.pg_stat_stream_tables.last_refresh_status is 'Whether the last one succeeded: COMPLETED or FAILED.';
comment on column pgtrickle.pg_stat_stream_tables.consecutive_errors is 'How many refreshes in a row have failed.';
comment on column pgtrickle.pg_stat_stream_tables.cdc_modes is 'How changes of its sources are captured: trigger, wal, compare, or several of them.';

create or replace function pgtrickle.st_refresh_stats() returns table (
    pgt_name text, pgt_schema text, status text, refresh_mode text, is_populated boolean, total_refreshes bigint,
    successful_refreshes bigint, failed_refreshes bigint, total_rows_inserted bigint, total_rows_deleted bigint,
    avg_duration_ms double precision, last_refresh_action text, last_refresh_status text,
    last_refresh_at timestamptz, staleness_secs double precision, stale boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select p.pgt_name::text, p.pgt_schema::text, p.status, p.refresh_mode, p.is_populated, p.total_refreshes,
        p.successful_refreshes, p.failed_refreshes, p.total_rows_inserted, p.total_rows_deleted, p.avg_duration_ms,
        p.last_refresh_action, p.last_refresh_status, p.last_refresh_at, extract(epoch from p.staleness)::double precision,
        p.stale
    from pgtrickle.pg_stat_stream_tables p order by p.pgt_schema, p.pgt_name
$$;
comment on function pgtrickle.st_refresh_stats() is
    E'Figures of the refreshes of every stream table, from the kept history. Call it with SELECT ... FROM. '
    'Everyone may call it.\n'
    '\npgt_name: The name of the stream table.'
    '\npgt_schema: Its schema.'
    '\nstatus: INITIALIZING, ACTIVE, SUSPENDED or ERROR.'
    '\nrefresh_mode: AUTO, DIFFERENTIAL or FULL, as configured.'
    '\nis_populated: Whether it has been loaded.'
    '\ntotal_refreshes: Refreshes in the kept history.'
    '\nsuccessful_refreshes: How many of them succeeded.'
    '\nfailed_refreshes: How many of them failed.'
    '\ntotal_rows_inserted: Rows that they wrote.'
    '\ntotal_rows_deleted: Rows that they removed.'
    '\navg_duration_ms: How long the successful ones took on average, in milliseconds.'
    '\nlast_refresh_action: What the last one did.'
    '\nlast_refresh_status: Whether the last one succeeded: COMPLETED or FAILED.'
    '\nlast_refresh_at: When it was last refreshed.'
    '\nstaleness_secs: The age of the oldest change that it does not show yet, in seconds; 0 if there is none.'
    '\nstale: Whether that is more than its schedule explains.';
