-- 0017_public_functions: schema pgtrickle keeps what users call or read. The remaining helpers move to pgtrickle_internal.
-- An upgraded database keeps the objects themselves, so views and triggers that use them keep working.

do $$
declare
    helper regprocedure;
    helper_view text;
begin
    for helper in
        select p.oid from pg_catalog.pg_proc p
        where p.pronamespace = 'pgtrickle'::regnamespace and p.proname = any ('{check_cron,cron_field,cron_hint,
            installation,schedule_seconds,timeout_seconds,waits_for_spark}'::name[])
    loop
        execute format('alter routine %s set schema pgtrickle_internal', helper);
    end loop;
    foreach helper_view in array '{own_drain,own_gates,own_remains,own_requests}'::text[] loop
        execute format('alter view if exists pgtrickle.%I set schema pgtrickle_internal', helper_view);
    end loop;
end
$$;
