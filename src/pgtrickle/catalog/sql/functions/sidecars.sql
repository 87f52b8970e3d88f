-- sidecars: the sidecars of this database and their load. Every role may read it: it only holds numbers.

-- server_worker_inventory: the workers of every sidecar that serves this database, with its last report; one row for
-- each database that the sidecar serves. Of other databases it tells numbers, but no names of stream tables. A sidecar
-- that has not reported for long is removed.
create or replace view pgtrickle.server_worker_inventory as
select s.sidecar_id, s.host, s.process, s.version, s.started_at, s.seen_at,
    s.seen_at > now() - interval '15 s' as is_alive, s.workers, s.busy, s.queued,
    (s.vitals ->> 'behind')::bigint as behind, (s.vitals ->> 'tick_ms')::double precision as tick_ms,
    (s.vitals ->> 'slowest_tick_ms')::double precision as slowest_tick_ms,
    coalesce((s.vitals ->> 'refreshes')::bigint, 0) as refreshes,
    coalesce((s.vitals ->> 'failures')::bigint, 0) as failures, s.vitals,
    current_database()::text as database, true as is_here,
    coalesce((s.vitals ->> 'quota')::integer, s.workers) as quota, coalesce(s.vitals ->> 'state', 'serving') as state,
    array(select t.name from jsonb_array_elements_text(coalesce(s.vitals -> 'refreshing', '[]')) t(name)) as refreshing
from pgtrickle.pgt_sidecars s
union all
select s.sidecar_id, s.host, s.process, s.version, s.started_at, s.seen_at, s.seen_at > now() - interval '15 s',
    (o.value ->> 'workers')::integer, (o.value ->> 'busy')::integer, (o.value ->> 'queued')::integer,
    (o.value ->> 'behind')::bigint, (o.value ->> 'tick_ms')::double precision, null, (o.value ->> 'refreshes')::bigint,
    (o.value ->> 'failures')::bigint, null, o.value ->> 'database', false, (o.value ->> 'quota')::integer,
    o.value ->> 'state', null
from pgtrickle.pgt_sidecars s cross join lateral jsonb_array_elements(coalesce(s.vitals -> 'others', '[]')) o;
comment on view pgtrickle.server_worker_inventory is
    'The sidecars of this database with their workers and last report: a row for each database that a sidecar serves. '
    'Everyone may read it.';
comment on column pgtrickle.server_worker_inventory.sidecar_id is 'The number of the sidecar.';
comment on column pgtrickle.server_worker_inventory.host is 'The host that it runs on.';
comment on column pgtrickle.server_worker_inventory.process is 'Its process id.';
comment on column pgtrickle.server_worker_inventory.version is 'Its version of pgtrickle.';
comment on column pgtrickle.server_worker_inventory.started_at is 'When it started.';
comment on column pgtrickle.server_worker_inventory.seen_at is 'When it last reported.';
comment on column pgtrickle.server_worker_inventory.is_alive is
    'Whether it reported within the last 15 seconds.';
comment on column pgtrickle.server_worker_inventory.workers is 'How many workers it has.';
comment on column pgtrickle.server_worker_inventory.busy is 'How many of them are refreshing.';
comment on column pgtrickle.server_worker_inventory.queued is 'Units of work that wait for a worker.';
comment on column pgtrickle.server_worker_inventory.behind is
    'Stream tables that do not show their newest changes yet.';
comment on column pgtrickle.server_worker_inventory.tick_ms is 'How long a poll takes, in milliseconds.';
comment on column pgtrickle.server_worker_inventory.slowest_tick_ms is
    'The longest poll since it started, in milliseconds.';
comment on column pgtrickle.server_worker_inventory.refreshes is 'Refreshes since it started.';
comment on column pgtrickle.server_worker_inventory.failures is 'Failed refreshes since it started.';
comment on column pgtrickle.server_worker_inventory.vitals is
    'Everything it reports about this database, as JSON; null for other databases.';
comment on column pgtrickle.server_worker_inventory.database is
    'The database that the workers serve, by the name that the sidecar has for it.';
comment on column pgtrickle.server_worker_inventory.is_here is 'Whether that is this database.';
comment on column pgtrickle.server_worker_inventory.quota is
    'How many workers the database always has. It uses more while other databases do not need them.';
comment on column pgtrickle.server_worker_inventory.state is
    'What the sidecar does about the database: starting, serving, resting, disabled, unreachable or refused.';
comment on column pgtrickle.server_worker_inventory.refreshing is
    'The stream tables that are being refreshed; null for other databases.';

-- worker_allocation_status: the workers of all sidecars for each database: how many are busy, how many it always has,
-- and how long its queue is.
create or replace function pgtrickle.worker_allocation_status() returns table (
    database text, sidecars bigint, used bigint, quota bigint, queued bigint, behind bigint,
    tick_ms double precision)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select current_database()::text, count(*), coalesce(sum(i.busy), 0), coalesce(sum(i.quota), 0),
        coalesce(sum(i.queued), 0), coalesce(max(i.behind), 0), max(i.tick_ms)
    from pgtrickle.server_worker_inventory i where i.is_alive and i.is_here
    union all
    select i.database, count(*), sum(i.busy), sum(i.quota), sum(i.queued), max(i.behind), max(i.tick_ms)
    from pgtrickle.server_worker_inventory i where i.is_alive and not i.is_here
    group by i.database
$$;
comment on function pgtrickle.worker_allocation_status() is
    E'For this database and the others that its sidecars serve: the number of busy workers, the quota, and the '
    'length of the queue. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\ndatabase: The database; this one comes first.'
    '\nsidecars: How many sidecars serve it.'
    '\nused: Workers that are refreshing now.'
    '\nquota: Workers that the database always has; it uses more while others do not need them.'
    '\nqueued: Units of work that wait for a worker.'
    '\nbehind: Stream tables that do not show their newest changes yet.'
    '\ntick_ms: How long a poll of the slowest sidecar takes, in milliseconds.';

-- waits_for_spark: why no sidecar can compute at the moment, in words; null if one can, or none is running.
create or replace function pgtrickle_internal.waits_for_spark() returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('the sidecar is waiting for Spark: %s', min(i.vitals ->> 'waits_for_spark'))
    from pgtrickle.server_worker_inventory i where i.is_alive and i.is_here
    having bool_and(i.vitals ->> 'waits_for_spark' is not null)
$$;

-- is_alive: whether a sidecar has reported lately.
create or replace function pgtrickle_internal.is_alive(id uuid) returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from pgtrickle.pgt_sidecars s where s.sidecar_id = id and s.seen_at > clock_timestamp() - interval '15 s')
$$;

-- is_served: whether a sidecar has reported lately. It reads the clock, not the start of the transaction, so that a
-- transaction that waits notices when the sidecar is gone.
create or replace function pgtrickle_internal.is_served() returns boolean
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_sidecars s where s.seen_at > clock_timestamp() - interval '15 s')
$$;

-- sidecar_seen: when a sidecar last reported; null if none ever has.
create or replace function pgtrickle_internal.sidecar_seen() returns timestamptz
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select max(seen_at) from (
        select s.seen_at from pgtrickle.pgt_sidecars s
        union all
        select l.seen_at from pgtrickle.pgt_last_sidecar l
    ) seen
$$;

-- waits_for_sidecar: that no sidecar serves the database, and since when, in words; null if one does.
create or replace function pgtrickle_internal.waits_for_sidecar() returns text
language sql volatile set search_path = pg_catalog, pg_temp
as $$
    select case when not pgtrickle_internal.is_served() then 'no sidecar serves this database; '
        || coalesce('the last one was seen at '
            || to_char(pgtrickle_internal.sidecar_seen() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
            'none has been seen yet') end
$$;
