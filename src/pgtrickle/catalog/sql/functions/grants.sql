-- grants: what everyone may call and read. Everything else is for the sidecar's role.
-- Public functions run as the caller, so the caller needs EXECUTE on their helpers too. Each helper checks its
-- arguments.

-- Default privileges of the owner would give others access to every table and function here.
do $$
declare
    given text := (
        select string_agg(distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end, ', ')
        from pg_catalog.pg_default_acl d cross join lateral pg_catalog.aclexplode(d.defaclacl) a
        where d.defaclrole = quote_ident(current_user)::regrole and a.grantee <> d.defaclrole and d.defaclobjtype in ('r', 'S', 'f', 'n')
            and (d.defaclnamespace = 0 or d.defaclnamespace::regnamespace::text ~ '^pgtrickle(_|$)')
            -- who may execute what is decided below
            and not (d.defaclobjtype = 'f' and a.grantee = 0));
begin
    if given is not null then
        raise exception '%', format('default privileges of %I would give %s access to the tables of pgtrickle', current_user, given)
        using errcode = 'insufficient_privilege',
            hint = format('Revoke them, and grant them again for other schemas: alter default privileges for role %I '
                'revoke ... from ... (\ddp in psql lists them).', current_user);
    end if;
end
$$;

revoke execute on all routines in schema pgtrickle, pgtrickle_internal from public;
grant usage on schema pgtrickle_internal to public;

grant select on pgtrickle.stream_tables_info, pgtrickle.visible_history, pgtrickle.server_worker_inventory,
    pgtrickle.visible_repairs, pgtrickle.pg_stat_stream_tables, pgtrickle.quick_health, pgtrickle.pgt_cdc_status,
    pgtrickle.publication_status, pgtrickle.subscriptions, pgtrickle.attached_databases, pgtrickle.attached_tables,
    pgtrickle.attached_frontiers, pgtrickle.remote_readers, pgtrickle.broker_entries
    to public;
grant select (alias, is_detached) on pgtrickle.pgt_attached_databases to public;
grant select (alias, origin_schema, origin_name, source_relid, is_stand_in, last_error, declared_at)
    on pgtrickle.pgt_attached_tables to public;
grant select, insert (pgt_id, kind, seconds) on pgtrickle_internal.own_requests to public;
grant select, insert (source_relid), delete on pgtrickle_internal.own_gates to public;
grant select, insert (is_drained, is_disabled), update (is_drained, is_disabled), delete on pgtrickle_internal.own_drain to public;
grant select, delete on pgtrickle_internal.own_remains to public;
grant select on pgtrickle_internal.published_tables to public;
grant select, insert (pgt_id, slot), delete on pgtrickle_internal.own_subscribers to public;
grant select, insert (pgt_id, channel), delete on pgtrickle_internal.own_subscriptions to public;

-- commands
grant execute on function
    pgtrickle.create_stream_table, pgtrickle.create_stream_table_if_not_exists,
    pgtrickle.create_or_replace_stream_table, pgtrickle.alter_stream_table, pgtrickle.adopt_materialized_view, pgtrickle.drop_stream_table,
    pgtrickle.resume_stream_table, pgtrickle.repair_stream_table, pgtrickle.repair, pgtrickle.refresh_stream_table,
    pgtrickle.manual_refresh, pgtrickle.gate_source, pgtrickle.ungate_source, pgtrickle.drain,
    pgtrickle.undrain, pgtrickle.set_enabled, pgtrickle.attach_database, pgtrickle.detach_database,
    pgtrickle.declare_source to public;
grant execute on procedure pgtrickle.refresh_and_wait, pgtrickle.create_stream_table_and_wait,
    pgtrickle.verify_stream_table to public;

-- inspection
grant execute on function
    pgtrickle.pgt_status, pgtrickle.get_refresh_history, pgtrickle.get_staleness,
    pgtrickle.explain_refresh_mode, pgtrickle.list_sources, pgtrickle.change_buffer_sizes,
    pgtrickle.trigger_inventory, pgtrickle.worker_allocation_status, pgtrickle.version, pgtrickle.gated_sources,
    pgtrickle.changes, pgtrickle.change_point, pgtrickle.preview_refresh,
    pgtrickle.export_definition,
    pgtrickle.is_drained, pgtrickle.is_enabled, pgtrickle.waits_for, pgtrickle.is_copy, pgtrickle.repairs, pgtrickle.sidecar_role to public;

-- what follows a stream table: publications, subscribers and channels
grant execute on function
    pgtrickle.stream_table_to_publication, pgtrickle.drop_stream_table_publication, pgtrickle.register_subscriber,
    pgtrickle.unregister_subscriber, pgtrickle.subscribe, pgtrickle.unsubscribe,
    pgtrickle_internal.has_replica_identity, pgtrickle_internal.publication_comment,
    pgtrickle_internal.own_publication, pgtrickle_internal.has_equality, pgtrickle_internal.identify_rows,
    pgtrickle_internal.identify_published_rows, pgtrickle_internal.unidentified_tables, pgtrickle_internal.check_may_publish,
    pgtrickle_internal.publication_name, pgtrickle_internal.create_publication, pgtrickle_internal.warn_about_publishing,
    pgtrickle_internal.warn_subscribers, pgtrickle_internal.publish, pgtrickle_internal.unpublish, pgtrickle_internal.other_table,
    pgtrickle_internal.drop_publication_with, pgtrickle_internal.drop_publication, pgtrickle_internal.may_register,
    pgtrickle_internal.check_may_register, pgtrickle_internal.register_slot, pgtrickle_internal.unregister_slot,
    pgtrickle_internal.current_lsn, pgtrickle_internal.may_read, pgtrickle_internal.check_channel,
    pgtrickle_internal.check_may_notify, pgtrickle_internal.check_may_subscribe, pgtrickle_internal.open_channel,
    pgtrickle_internal.close_channel to public;

-- many definitions at once
grant execute on function
    pgtrickle.bulk_create, pgtrickle_internal.option_problem, pgtrickle_internal.definition_problems,
    pgtrickle_internal.create_defined, pgtrickle_internal.full_name to public;

-- what can be said about a query
grant execute on function
    pgtrickle.validate_query, pgtrickle_internal.constructs_of, pgtrickle_internal.doubt_about,
    pgtrickle_internal.mode_of to public;

-- monitoring
grant execute on function
    pgtrickle.refresh_timeline, pgtrickle.st_refresh_stats, pgtrickle.health_check, pgtrickle.health_summary,
    pgtrickle.check_cdc_health, pgtrickle.dependency_tree, pgtrickle.explain_st, pgtrickle.alerts, pgtrickle_internal.moment,
    pgtrickle_internal.properties_of, pgtrickle_internal.analysed_plan,
    pgtrickle_internal.lateness, pgtrickle_internal.readings, pgtrickle_internal.named, pgtrickle_internal.finding to public;

-- the trigger function of the guard: the owner of a stream table creates the trigger
grant execute on function pgtrickle.refuse_direct_write to public;

-- helpers that run as the caller
grant execute on function
    pgtrickle_internal.schedule_seconds, pgtrickle_internal.timeout_seconds, pgtrickle_internal.cron_field,
    pgtrickle_internal.cron_hint, pgtrickle_internal.check_cron, pgtrickle_internal.waits_for_spark, pgtrickle_internal.installation,
    pgtrickle_internal.may_act_as, pgtrickle_internal.may_forget, pgtrickle_internal.forget, pgtrickle_internal.printed, pgtrickle_internal.name_parts, pgtrickle_internal.new_name,
    pgtrickle_internal.find_stream_table, pgtrickle_internal.stream_table, pgtrickle_internal.one_of, pgtrickle_internal.options,
    pgtrickle_internal.session_settings, pgtrickle_internal.view_of, pgtrickle_internal.grants_for, pgtrickle_internal.unprinted, pgtrickle_internal.check_text, pgtrickle_internal.drop_view,
    pgtrickle_internal.check_room,
    pgtrickle_internal.create_storage, pgtrickle_internal.create_row_index, pgtrickle_internal.row_index_name, pgtrickle_internal.rename_row_index, pgtrickle_internal.row_index, pgtrickle_internal.leaves_row_index,
    pgtrickle_internal.check_columns, pgtrickle_internal.equip_storage, pgtrickle_internal.check_schema, pgtrickle_internal.check_schema_rights, pgtrickle_internal.is_hashable,
    pgtrickle_internal.match_columns, pgtrickle_internal.value_text, pgtrickle_internal.base_type, pgtrickle_internal.columns_of,
    pgtrickle_internal.canonical_of, pgtrickle_internal.prove_ownership,
    pgtrickle_internal.guard_always, pgtrickle_internal.enable_always_for, pgtrickle_internal.enable_always, pgtrickle_internal.is_decoded, pgtrickle_internal.wal_obstacle, pgtrickle_internal.wanted_capture,
    pgtrickle_internal.identity_columns, pgtrickle_internal.may_replicate, pgtrickle_internal.is_append_only, pgtrickle_internal.published_as, pgtrickle_internal.wal_slot, pgtrickle_internal.slot_gap,
    pgtrickle_internal.publication_gap, pgtrickle_internal.wal_gap, pgtrickle_internal.is_followed_elsewhere, pgtrickle_internal.why_triggers, pgtrickle_internal.wanted_triggers, pgtrickle_internal.tree_of,
    pgtrickle_internal.relation_of, pgtrickle_internal.alter_options, pgtrickle_internal.alter_query,
    pgtrickle_internal.alter_status, pgtrickle_internal.drop_by_id, pgtrickle_internal.check_may_refresh, pgtrickle_internal.raise_unanswered,
    pgtrickle_internal.refresh_lock, pgtrickle_internal.is_refreshed_since, pgtrickle_internal.failure_since, pgtrickle_internal.may_see_errors,
    pgtrickle_internal.is_source, pgtrickle_internal.source_named, pgtrickle_internal.gated_tables,
    pgtrickle_internal.gate_before, pgtrickle_internal.waits_for_triggers, pgtrickle_internal.trigger_level, pgtrickle_internal.is_replicated,
    pgtrickle_internal.drain_lock, pgtrickle_internal.drain_locks, pgtrickle_internal.is_draining,
    pgtrickle_internal.check_waits_for_nothing, pgtrickle_internal.may_refresh, pgtrickle_internal.may_ask, pgtrickle_internal.request_refresh, pgtrickle_internal.answer_to,
    pgtrickle_internal.request, pgtrickle_internal.request_comparison, pgtrickle_internal.result_of, pgtrickle_internal.check_not_suspended, pgtrickle_internal.check_served,
    pgtrickle_internal.is_served, pgtrickle_internal.sidecar_seen, pgtrickle_internal.raise_unserved,
    pgtrickle_internal.may_gate, pgtrickle_internal.check_may_gate, pgtrickle_internal.close_gate, pgtrickle_internal.open_gate,
    pgtrickle_internal.may_drain, pgtrickle_internal.check_may_drain, pgtrickle_internal.check_not_copy, pgtrickle_internal.is_guarded,
    pgtrickle_internal.bound_relation, pgtrickle_internal.named_relation, pgtrickle_internal.shown_name, pgtrickle_internal.own_guard, pgtrickle_internal.restore_guard,
    pgtrickle_internal.has_moved, pgtrickle_internal.timeline, pgtrickle_internal.system_identifier, pgtrickle_internal.present_identity,
    pgtrickle_internal.snapshot_time, pgtrickle_internal.missing_grants, pgtrickle_internal.missing_room, pgtrickle_internal.trial_schema,
    pgtrickle_internal.relations_of, pgtrickle_internal.rules_of, pgtrickle_internal.is_invoker,
    pgtrickle_internal.refuse_deferred_code,
    pgtrickle_internal.is_never_null, pgtrickle_internal.separates_values, pgtrickle_internal.unique_keys,
    pgtrickle_internal.may_select, pgtrickle_internal.copy_of, pgtrickle_internal.is_served, pgtrickle_internal.sidecar_seen,
    pgtrickle_internal.definition_text, pgtrickle_internal.definition_changes, pgtrickle_internal.stored_changes,
    pgtrickle_internal.tables_of_set, pgtrickle_internal.request_preview, pgtrickle_internal.preview_lock, pgtrickle_internal.preview_since,
    pgtrickle_internal.wait_for_preview, pgtrickle_internal.preview_rows,
    pgtrickle_internal.keep_bounds, pgtrickle_internal.may_read_changes, pgtrickle_internal.check_may_read_changes,
    pgtrickle_internal.newest_point, pgtrickle_internal.refuse_unkept, pgtrickle_internal.check_kept, pgtrickle_internal.read_changes,
    pgtrickle_internal.waits_for_sidecar, pgtrickle_internal.is_being_compiled, pgtrickle_internal.refusal_of,
    pgtrickle_internal.check_may_verify, pgtrickle_internal.check_being_verified, pgtrickle_internal.is_verified, pgtrickle_internal.has_options to public;

-- tables of other databases
grant execute on function
    pgtrickle_internal.check_may_attach, pgtrickle_internal.stand_in, pgtrickle_internal.with_stand_ins,
    pgtrickle_internal.stand_in_name, pgtrickle_internal.is_attached to public;

-- helpers that replace a relation, as the caller
grant execute on function
    pgtrickle_internal.shape_of, pgtrickle_internal.kept_columns, pgtrickle_internal.lost_column, pgtrickle_internal.reading_views, pgtrickle_internal.view_code,
    pgtrickle_internal.own_triggers, pgtrickle_internal.own_indexes, pgtrickle_internal.carried_parts, pgtrickle_internal.refuse_breaking,
    pgtrickle_internal.tell_losses, pgtrickle_internal.part_definitions, pgtrickle_internal.carried_statements, pgtrickle_internal.index_definitions,
    pgtrickle_internal.statistics_definitions, pgtrickle_internal.carry_grants, pgtrickle_internal.build_replacement,
    pgtrickle_internal.carry_columns, pgtrickle_internal.carry_indexes, pgtrickle_internal.part_name, pgtrickle_internal.lock_soon,
    pgtrickle_internal.put_in_place, pgtrickle_internal.finish_replacement, pgtrickle_internal.reshape, pgtrickle_internal.check_reads_not,
    pgtrickle_internal.materialized_view, pgtrickle_internal.check_adoptable, pgtrickle_internal.columns_named,
    pgtrickle_internal.adoption_parts, pgtrickle_internal.keep_unchanged, pgtrickle_internal.check_same_meaning to public;

-- helpers that run as the sidecar's role and check every argument
grant execute on function
    pgtrickle_internal.register, pgtrickle_internal.change_query, pgtrickle_internal.change_options, pgtrickle_internal.change_status,
    pgtrickle_internal.note_set, pgtrickle_internal.untrusted_of, pgtrickle_internal.ask_for_repair, pgtrickle_internal.note_always, pgtrickle_internal.note_enabled,
    pgtrickle_internal.shown_until, pgtrickle_internal.shown_times, pgtrickle_internal.pending_counts,
    pgtrickle_internal.check_candidate, pgtrickle_internal.hold_table, pgtrickle_internal.replace_table,
    pgtrickle_internal.hold_readers, pgtrickle_internal.register_adopted, pgtrickle_internal.note_name to public;

-- The meaning of our functions must not depend on the session: these settings change how SQL is parsed and how
-- names are printed, and a cached plan would keep that meaning for later calls by another role.
-- Functions without a search_path of their own run with the settings of the caller.
do $$
declare
    ours oid;
begin
    for ours in
        select p.oid from pg_catalog.pg_proc p
        where p.pronamespace in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace)
            and exists (select from unnest(p.proconfig) c where c ~ '^search_path=')
    loop
        execute format('alter routine %s set standard_conforming_strings = on', ours::regprocedure);
        execute format('alter routine %s set transform_null_equals = off', ours::regprocedure);
        execute format('alter routine %s set quote_all_identifiers = off', ours::regprocedure);
        execute format('alter routine %s set array_nulls = on', ours::regprocedure);
    end loop;
end
$$;
