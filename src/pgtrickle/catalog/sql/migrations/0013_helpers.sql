-- 0013_helpers: functions that are not for people to call are apart from those that are, in a schema of their own.
-- What an upgraded database has is moved as it is, so triggers, views and indexes that use it stay.
-- Nobody else may own the schema: who owns it could put functions in the place of ours.

create schema pgtrickle_internal;

do $$
declare
    helper regprocedure;
begin
    for helper in
        select p.oid from pg_catalog.pg_proc p
        where p.pronamespace = 'pgtrickle'::regnamespace and p.proname <> all ('{alter_stream_table,change_buffer_sizes,check_cron,create_or_replace_stream_table,
            create_stream_table,create_stream_table_and_wait,create_stream_table_if_not_exists,cron_field,
            cron_hint,drain,drop_stream_table,explain_refresh_mode,gate_source,gated_sources,
            get_refresh_history,get_staleness,installation,is_copy,is_drained,list_sources,manual_refresh,
            pgt_status,refresh_and_wait,refresh_stream_table,refuse_direct_write,repair,repair_stream_table,
            repairs,resume_stream_table,schedule_seconds,sidecar_role,timeout_seconds,trigger_inventory,
            undrain,ungate_source,version,waits_for,waits_for_spark,worker_allocation_status}'::name[])
    loop
        execute format('alter routine %s set schema pgtrickle_internal', helper);
    end loop;
end
$$;
