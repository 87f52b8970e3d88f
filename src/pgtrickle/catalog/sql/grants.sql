-- grants: everybody may call what is listed here; all else is for the sidecar's role.
-- Functions that run as the caller need what they call, so some of these are not meant to be called
-- by hand; each of them checks what it is given.

revoke execute on all routines in schema pgtrickle from public;

grant select on pgtrickle.stream_tables_info, pgtrickle.visible_history, pgtrickle.server_worker_inventory,
    pgtrickle.visible_repairs
    to public;
grant select, insert (pgt_id) on pgtrickle.own_requests to public;
grant select, insert (source_relid), delete on pgtrickle.own_gates to public;
grant select, insert (is_draining), delete on pgtrickle.own_drain to public;

-- commands
grant execute on function
    pgtrickle.create_stream_table, pgtrickle.create_stream_table_if_not_exists,
    pgtrickle.create_or_replace_stream_table, pgtrickle.alter_stream_table, pgtrickle.drop_stream_table,
    pgtrickle.resume_stream_table, pgtrickle.repair_stream_table, pgtrickle.repair, pgtrickle.refresh_stream_table,
    pgtrickle.manual_refresh, pgtrickle.gate_source, pgtrickle.ungate_source, pgtrickle.drain,
    pgtrickle.undrain to public;
grant execute on procedure pgtrickle.refresh_and_wait, pgtrickle.create_stream_table_and_wait to public;

-- looking
grant execute on function
    pgtrickle.pgt_status, pgtrickle.get_refresh_history, pgtrickle.get_staleness,
    pgtrickle.explain_refresh_mode, pgtrickle.list_sources, pgtrickle.change_buffer_sizes,
    pgtrickle.trigger_inventory, pgtrickle.worker_allocation_status, pgtrickle.version,
    pgtrickle.schedule_seconds, pgtrickle.timeout_seconds, pgtrickle.cron_field, pgtrickle.cron_hint, pgtrickle.check_cron,
    pgtrickle.gated_sources, pgtrickle.is_drained, pgtrickle.waits_for,
    pgtrickle.waits_for_spark, pgtrickle.is_copy, pgtrickle.installation, pgtrickle.repairs to public;

-- parts of the above that run as the caller
grant execute on function
    pgtrickle.sidecar_role, pgtrickle.printed, pgtrickle.name_parts, pgtrickle.new_name,
    pgtrickle.find_stream_table, pgtrickle.stream_table, pgtrickle.one_of, pgtrickle.options,
    pgtrickle.session_settings, pgtrickle.view_of, pgtrickle.unprinted, pgtrickle.check_text, pgtrickle.drop_view,
    pgtrickle.check_room,
    pgtrickle.create_storage, pgtrickle.create_row_index, pgtrickle.replace_row_index, pgtrickle.is_hashable,
    pgtrickle.match_columns, pgtrickle.value_text, pgtrickle.base_type, pgtrickle.columns_of,
    pgtrickle.canonical_of, pgtrickle.prove_ownership,
    pgtrickle.guard_always, pgtrickle.enable_always_for, pgtrickle.enable_always, pgtrickle.wanted_triggers, pgtrickle.tree_of,
    pgtrickle.relation_of, pgtrickle.alter_options, pgtrickle.alter_query, pgtrickle.add_columns,
    pgtrickle.alter_status, pgtrickle.drop_by_id, pgtrickle.check_may_refresh, pgtrickle.raise_unanswered,
    pgtrickle.refresh_lock, pgtrickle.is_refreshed_since, pgtrickle.failure_since, pgtrickle.may_see_errors,
    pgtrickle.refuse_direct_write, pgtrickle.is_source, pgtrickle.source_named, pgtrickle.gated_tables,
    pgtrickle.gate_before, pgtrickle.waits_for_triggers, pgtrickle.trigger_level, pgtrickle.is_replicated,
    pgtrickle.drain_lock, pgtrickle.drain_locks, pgtrickle.is_draining,
    pgtrickle.check_waits_for_nothing, pgtrickle.may_refresh, pgtrickle.request_refresh, pgtrickle.answer_to,
    pgtrickle.may_gate, pgtrickle.check_may_gate, pgtrickle.close_gate, pgtrickle.open_gate,
    pgtrickle.may_drain, pgtrickle.check_may_drain, pgtrickle.check_not_copy, pgtrickle.is_guarded,
    pgtrickle.bound_relation, pgtrickle.named_relation, pgtrickle.shown_name, pgtrickle.own_guard, pgtrickle.restore_guard,
    pgtrickle.has_moved, pgtrickle.timeline, pgtrickle.system_identifier, pgtrickle.present_identity to public;

-- parts that run as the sidecar's role and check everything they are given
grant execute on function
    pgtrickle.register, pgtrickle.change_query, pgtrickle.change_options, pgtrickle.change_status,
    pgtrickle.ask_for_repair, pgtrickle.forget, pgtrickle.note_always, pgtrickle.note_enabled to public;

-- What a function of ours means must not depend on the session it runs in: these settings change how SQL is
-- read and how names are printed, and a cached plan would keep that meaning for later calls as somebody else.
-- Functions without a search_path of their own run as the caller and are left as they are.
do $$
declare
    ours oid;
begin
    for ours in
        select p.oid from pg_catalog.pg_proc p
        where p.pronamespace = 'pgtrickle'::regnamespace
            and exists (select from unnest(p.proconfig) c where c ~ '^search_path=')
    loop
        execute format('alter routine %s set standard_conforming_strings = on', ours::regprocedure);
        execute format('alter routine %s set transform_null_equals = off', ours::regprocedure);
        execute format('alter routine %s set quote_all_identifiers = off', ours::regprocedure);
        execute format('alter routine %s set array_nulls = on', ours::regprocedure);
    end loop;
end
$$;
