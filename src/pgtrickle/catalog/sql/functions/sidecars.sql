-- sidecars: the sidecars of this database and their load. Every role may read it: it only holds numbers.

-- server_worker_inventory: every sidecar with its last report. One that has not reported for long is removed.
create or replace view pgtrickle.server_worker_inventory as
select s.sidecar_id, s.host, s.process, s.version, s.started_at, s.seen_at,
    s.seen_at > now() - interval '15 s' as is_alive, s.workers, s.busy, s.queued,
    (s.vitals ->> 'behind')::bigint as behind, (s.vitals ->> 'tick_ms')::double precision as tick_ms,
    (s.vitals ->> 'slowest_tick_ms')::double precision as slowest_tick_ms,
    coalesce((s.vitals ->> 'refreshes')::bigint, 0) as refreshes,
    coalesce((s.vitals ->> 'failures')::bigint, 0) as failures, s.vitals
from pgtrickle.pgt_sidecars s;
comment on view pgtrickle.server_worker_inventory is
    'The sidecars of this database with their workers and last report. Everyone may read it.';

-- worker_allocation_status: the workers of all sidecars: how many are busy, how many exist, and how long the queue
-- is.
create or replace function pgtrickle.worker_allocation_status() returns table (
    database text, sidecars bigint, used bigint, quota bigint, queued bigint, behind bigint,
    tick_ms double precision)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select current_database()::text, count(*), coalesce(sum(i.busy), 0), coalesce(sum(i.workers), 0),
        coalesce(sum(i.queued), 0), coalesce(max(i.behind), 0), max(i.tick_ms)
    from pgtrickle.server_worker_inventory i where i.is_alive
$$;
comment on function pgtrickle.worker_allocation_status() is
    'The number of busy and available workers of all sidecars, and the length of the queue. Call it with '
    'SELECT ... FROM. Everyone may call it.';

-- waits_for_spark: why no sidecar can compute at the moment, in words; null if one can, or none is running.
create or replace function pgtrickle_internal.waits_for_spark() returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('the sidecar waits for Spark: %s', min(i.vitals ->> 'waits_for_spark'))
    from pgtrickle.server_worker_inventory i where i.is_alive
    having bool_and(i.vitals ->> 'waits_for_spark' is not null)
$$;
