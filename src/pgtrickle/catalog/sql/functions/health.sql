-- health: the state of the whole installation in a few rows. Every role may read it: it names stream tables and
-- sources, and quotes no errors.

-- named: the first few of many names, for a sentence.
create or replace function pgtrickle_internal.named(names text[]) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select array_to_string(names[:5], ', ')
        || case when cardinality(names) > 5 then format(' and %s more', cardinality(names) - 5) else '' end
$$;

-- finding: a row of health_check about a list of names: the severity if there are any, else OK.
create or replace function pgtrickle_internal.finding(severity text, names text[], problem text, otherwise text)
returns table (found_severity text, detail text)
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select case when cardinality(names) > 0 then severity else 'OK' end,
        case when cardinality(names) > 0 then format('%s: %s', problem, pgtrickle_internal.named(names))
            else otherwise end
$$;

create or replace function pgtrickle.health_check() returns table (check_name text, severity text, detail text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with tables as materialized (
        select format('%I.%I', i.pgt_schema, i.pgt_name) as name, i.pgt_id, i.status, i.consecutive_errors,
            i.needs_reinit, l.stale
        from pgtrickle.stream_tables_info i left join pgtrickle_internal.lateness() l on l.pgt_id = i.pgt_id
    ), workers as materialized (
        select w.* from pgtrickle.worker_allocation_status() w where w.database = current_database()
    ), lists as materialized (
        select coalesce(array_agg(t.name order by t.name) filter (where t.status = 'ERROR'), '{}') as failed,
            coalesce(array_agg(t.name order by t.name) filter (where t.status = 'SUSPENDED'), '{}') as suspended,
            coalesce(array_agg(t.name order by t.name) filter (where t.stale), '{}') as stale,
            coalesce(array_agg(t.name order by t.name) filter (where t.needs_reinit), '{}') as reload,
            coalesce(array_agg(t.name order by t.name) filter (where t.consecutive_errors > 0), '{}') as erring,
            coalesce(array_agg(t.name order by t.name) filter (where p.pending > 10000), '{}') as lagging
        from tables t left join (
            select c.pgt_id, sum(c.pending_rows) as pending from pgtrickle_internal.pending_counts(null) c group by c.pgt_id
        ) p on p.pgt_id = t.pgt_id
    )
    select 'scheduler_running', case when v.missing is null then 'OK' else 'ERROR' end,
        coalesce(v.missing, format('sidecars that serve this database: %s', w.sidecars))
    from (select pgtrickle_internal.waits_for_sidecar()) v(missing), workers w
    union all
    select 'original_database', case when pgtrickle.is_copy() then 'ERROR' else 'OK' end,
        case when pgtrickle.is_copy() then 'this database is a copy: nothing is refreshed until you run select * from pgtrickle.repair()'
            else 'this database is not a copy' end
    union all
    select 'drained', case when d.since is null then 'OK' else 'WARN' end,
        coalesce(format('the database has been %s since %s: nothing is refreshed until you run select pgtrickle.%s',
            d.what, d.since, d.remedy), 'refreshes may start')
    from (values (1)) one(row) left join (
        select to_char(r.drained_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
            case when r.is_disabled then 'disabled' else 'drained' end,
            case when r.is_disabled then 'set_enabled(true)' else 'undrain()' end
        from pgtrickle.pgt_drain r
    ) d(since, what, remedy) on true
    union all
    select 'spark', case when s.waits is null then 'OK' else 'WARN' end, coalesce(s.waits, 'no sidecar waits for Spark')
    from (select pgtrickle_internal.waits_for_spark()) s(waits)
    union all
    select 'error_tables', f.* from lists l,
        pgtrickle_internal.finding('ERROR', l.failed, 'failed', 'no stream table has failed') f
    union all
    select 'suspended_tables', f.* from lists l,
        pgtrickle_internal.finding('ERROR', l.suspended, 'suspended', 'no stream table is suspended') f
    union all
    select 'consecutive_errors', f.* from lists l,
        pgtrickle_internal.finding('WARN', l.erring, 'failed at the last refresh', 'every last refresh succeeded') f
    union all
    select 'stale_tables', f.* from lists l,
        pgtrickle_internal.finding('WARN', l.stale, 'later than scheduled', 'every stream table keeps its schedule') f
    union all
    select 'needs_reinit', f.* from lists l,
        pgtrickle_internal.finding('WARN', l.reload, 'waiting to be loaded again', 'no stream table waits to be loaded again') f
    union all
    select 'buffer_growth', f.* from lists l,
        pgtrickle_internal.finding('WARN', l.lagging, 'more than 10,000 pending changes',
            'no stream table has more than 10,000 pending changes') f
    union all
    select 'capture', f.*
    from (select coalesce(array_agg(format('%s (%s)', c.source_table, c.alert) order by c.source_table), '{}')
        from pgtrickle.check_cdc_health() c where c.alert is not null) a(names),
        pgtrickle_internal.finding('ERROR', a.names, 'not captured as it should be', 'every source is captured') f
    union all
    select 'gated_sources', f.*
    from (select coalesce(array_agg(g.source_table order by g.source_table), '{}') from pgtrickle.gated_sources() g) a(names),
        pgtrickle_internal.finding('WARN', a.names, 'gated', 'no source is gated') f
    union all
    select 'worker_pool', case when w.quota > 0 and w.used >= w.quota and w.queued > 0 then 'WARN' else 'OK' end,
        format('busy workers: %s of %s', w.used, w.quota) from workers w
    union all
    select 'job_queue', case when w.queued > 10 then 'WARN' else 'OK' end,
        format('units of work that wait for a worker: %s', w.queued) from workers w
$$;
comment on function pgtrickle.health_check() is
    E'Checks of the whole installation, one row each. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\ncheck_name: What was checked.'
    '\nseverity: OK, WARN or ERROR.'
    '\ndetail: What was found, in words.';

create or replace function pgtrickle.health_summary() returns table (
    total_stream_tables integer, active_count integer, error_count integer, suspended_count integer,
    stale_count integer, reinit_pending integer, max_staleness_seconds double precision, scheduler_status text,
    cache_hit_rate double precision)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select count(*)::integer, count(*) filter (where s.status = 'ACTIVE')::integer,
        count(*) filter (where s.status = 'ERROR')::integer, count(*) filter (where s.status = 'SUSPENDED')::integer,
        count(*) filter (where l.stale)::integer, count(*) filter (where s.needs_reinit)::integer,
        extract(epoch from max(l.staleness))::double precision,
        case when pgtrickle_internal.waits_for_sidecar() is not null then 'STOPPED'
            when exists (select from pgtrickle.pgt_drain) then 'DRAINED' else 'ACTIVE' end,
        (select sum((w.vitals ->> 'hits')::double precision)
                / nullif(sum((w.vitals ->> 'hits')::double precision + (w.vitals ->> 'misses')::double precision), 0)
            from pgtrickle.server_worker_inventory w where w.is_alive and w.is_here)
    from pgtrickle.pgt_stream_tables s left join pgtrickle_internal.lateness() l on l.pgt_id = s.pgt_id
$$;
comment on function pgtrickle.health_summary() is
    E'The state of the whole installation in one row. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\ntotal_stream_tables: How many stream tables exist.'
    '\nactive_count: How many are ACTIVE.'
    '\nerror_count: How many failed at their last refresh and are retried.'
    '\nsuspended_count: How many are suspended.'
    '\nstale_count: How many are later than their schedules explain.'
    '\nreinit_pending: How many wait to be loaded again.'
    '\nmax_staleness_seconds: The age of the oldest change that a stream table does not show yet; null without '
    'stream tables.'
    '\nscheduler_status: ACTIVE if a sidecar serves the database, DRAINED if it may start nothing, STOPPED without one.'
    '\ncache_hit_rate: The share of refreshes that found their compiled query in memory; null if there were none.';

create or replace view pgtrickle.quick_health as
select c.total_stream_tables, c.error_tables, c.stale_tables, r.scheduler_running,
    case when c.total_stream_tables = 0 then 'EMPTY'
        when c.suspended_tables > 0 or not r.scheduler_running then 'CRITICAL'
        when c.error_tables > 0 or c.stale_tables > 0 then 'WARNING'
        else 'OK' end as status
from (
    select count(*) as total_stream_tables,
        count(*) filter (where s.status = 'ERROR' or s.consecutive_errors > 0) as error_tables,
        count(*) filter (where l.stale) as stale_tables, count(*) filter (where s.status = 'SUSPENDED') as suspended_tables
    from pgtrickle.pgt_stream_tables s left join pgtrickle_internal.lateness() l on l.pgt_id = s.pgt_id
) c
cross join (select pgtrickle_internal.waits_for_sidecar() is null as scheduler_running) r;
comment on view pgtrickle.quick_health is
    'The state of the whole installation in one word, with the figures behind it. Everyone may read it.';
comment on column pgtrickle.quick_health.total_stream_tables is 'How many stream tables exist.';
comment on column pgtrickle.quick_health.error_tables is 'How many failed at their last refresh.';
comment on column pgtrickle.quick_health.stale_tables is 'How many are later than their schedules explain.';
comment on column pgtrickle.quick_health.scheduler_running is 'Whether a sidecar serves the database.';
comment on column pgtrickle.quick_health.status is
    'EMPTY without stream tables; CRITICAL if one is suspended or no sidecar is running; WARNING if one has failed or '
    'is stale; else OK.';
