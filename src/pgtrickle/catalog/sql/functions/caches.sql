-- caches: the compiled queries that sidecars cache. Only the sidecar's role, and roles that it grants EXECUTE, can
-- call these functions: clearing the caches makes every sidecar compile again.

-- clear_caches: clear every cache of every sidecar. Returns how many compiled queries the catalog held. A running
-- sidecar clears its own caches at its next poll or refresh, before it uses them again.
create or replace function pgtrickle_internal.clear_caches() returns bigint
language sql security definer set search_path = pg_catalog, pg_temp
as $$
    with raised as (
        update pgtrickle.pgt_caches set generation = generation + 1, cleared_at = clock_timestamp()
    ), gone as (
        delete from pgtrickle.pgt_compiled returning 1
    )
    select count(*) from gone
$$;

-- cache_stats: the compiled queries in the catalog, grouped by the version of the code that can use them.
create or replace function pgtrickle_internal.cache_stats() returns table (
    code_version text, entries bigint, bytes bigint, oldest timestamptz, newest timestamptz, generation bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select p.code_version, count(*), sum(octet_length(p.payload))::bigint, min(p.compiled_at), max(p.compiled_at),
        max(p.generation)
    from pgtrickle.pgt_compiled p group by p.code_version order by max(p.compiled_at) desc
$$;
