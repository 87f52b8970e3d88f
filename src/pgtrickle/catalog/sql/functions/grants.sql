-- grants: what everyone may call and read. Everything else is for the sidecar's role.
-- Public functions run as the caller, so the caller needs EXECUTE on their helpers too. Each helper checks its
-- arguments.

-- Default privileges of the owner would give others access to every table and function here.
do $$
declare
    given text := (
        select string_agg(distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end, ', ')
        from pg_catalog.pg_default_acl d cross join lateral pg_catalog.aclexplode(d.defaclacl) a
        where d.defaclrole = current_user::regrole and a.grantee <> d.defaclrole and d.defaclobjtype in ('r', 'S', 'f', 'n')
            and (d.defaclnamespace = 0 or d.defaclnamespace::regnamespace::text ~ '^pgtrickle(_|$)')
            -- who may execute what is decided below
            and not (d.defaclobjtype = 'f' and a.grantee = 0));
begin
    if given is not null then
        raise exception '%', format('default privileges of %I would give %s access to the tables of pgtrickle', current_user, given)
        using errcode = 'insufficient_privilege',
            hint = format('Take them back, and give them again for other schemas: alter default privileges for role %I '
                'revoke ... from ... (\ddp in psql lists them).', current_user);
    end if;
end
$$;

revoke execute on all routines in schema pgtrickle, pgtrickle_internal from public;
grant usage on schema pgtrickle_internal to public;

grant select on pgtrickle.stream_tables_info, pgtrickle.visible_history, pgtrickle.server_worker_inventory,
    pgtrickle.visible_repairs
    to public;
grant select, insert (pgt_id) on pgtrickle_internal.own_requests to public;
grant select, insert (source_relid), delete on pgtrickle_internal.own_gates to public;
grant select, insert (is_draining), delete on pgtrickle_internal.own_drain to public;
grant select, delete on pgtrickle_internal.own_remains to public;

-- commands
grant execute on function
    pgtrickle.create_stream_table, pgtrickle.create_stream_table_if_not_exists,
    pgtrickle.create_or_replace_stream_table, pgtrickle.alter_stream_table, pgtrickle.drop_stream_table,
    pgtrickle.resume_stream_table, pgtrickle.repair_stream_table, pgtrickle.repair, pgtrickle.refresh_stream_table,
    pgtrickle.manual_refresh, pgtrickle.gate_source, pgtrickle.ungate_source, pgtrickle.drain,
    pgtrickle.undrain to public;
grant execute on procedure pgtrickle.refresh_and_wait, pgtrickle.create_stream_table_and_wait to public;

-- inspection
grant execute on function
    pgtrickle.pgt_status, pgtrickle.get_refresh_history, pgtrickle.get_staleness,
    pgtrickle.explain_refresh_mode, pgtrickle.list_sources, pgtrickle.change_buffer_sizes,
    pgtrickle.trigger_inventory, pgtrickle.worker_allocation_status, pgtrickle.version, pgtrickle.gated_sources,
    pgtrickle.is_drained, pgtrickle.waits_for, pgtrickle.is_copy, pgtrickle.repairs, pgtrickle.sidecar_role to public;

-- the trigger function of the guard: the owner of a stream table creates the trigger
grant execute on function pgtrickle.refuse_direct_write to public;

-- helpers that run as the caller
grant execute on function
    pgtrickle_internal.schedule_seconds, pgtrickle_internal.timeout_seconds, pgtrickle_internal.cron_field,
    pgtrickle_internal.cron_hint, pgtrickle_internal.check_cron, pgtrickle_internal.waits_for_spark, pgtrickle_internal.installation,
    pgtrickle_internal.may_act_as, pgtrickle_internal.may_forget, pgtrickle_internal.forget, pgtrickle_internal.printed, pgtrickle_internal.name_parts, pgtrickle_internal.new_name,
    pgtrickle_internal.find_stream_table, pgtrickle_internal.stream_table, pgtrickle_internal.one_of, pgtrickle_internal.options,
    pgtrickle_internal.session_settings, pgtrickle_internal.view_of, pgtrickle_internal.unprinted, pgtrickle_internal.check_text, pgtrickle_internal.drop_view,
    pgtrickle_internal.check_room,
    pgtrickle_internal.create_storage, pgtrickle_internal.create_row_index, pgtrickle_internal.replace_row_index, pgtrickle_internal.is_hashable,
    pgtrickle_internal.match_columns, pgtrickle_internal.value_text, pgtrickle_internal.base_type, pgtrickle_internal.columns_of,
    pgtrickle_internal.canonical_of, pgtrickle_internal.prove_ownership,
    pgtrickle_internal.guard_always, pgtrickle_internal.enable_always_for, pgtrickle_internal.enable_always, pgtrickle_internal.wanted_triggers, pgtrickle_internal.tree_of,
    pgtrickle_internal.relation_of, pgtrickle_internal.alter_options, pgtrickle_internal.alter_query, pgtrickle_internal.add_columns,
    pgtrickle_internal.alter_status, pgtrickle_internal.drop_by_id, pgtrickle_internal.check_may_refresh, pgtrickle_internal.raise_unanswered,
    pgtrickle_internal.refresh_lock, pgtrickle_internal.is_refreshed_since, pgtrickle_internal.failure_since, pgtrickle_internal.may_see_errors,
    pgtrickle_internal.is_source, pgtrickle_internal.source_named, pgtrickle_internal.gated_tables,
    pgtrickle_internal.gate_before, pgtrickle_internal.waits_for_triggers, pgtrickle_internal.trigger_level, pgtrickle_internal.is_replicated,
    pgtrickle_internal.drain_lock, pgtrickle_internal.drain_locks, pgtrickle_internal.is_draining,
    pgtrickle_internal.check_waits_for_nothing, pgtrickle_internal.may_refresh, pgtrickle_internal.request_refresh, pgtrickle_internal.answer_to,
    pgtrickle_internal.may_gate, pgtrickle_internal.check_may_gate, pgtrickle_internal.close_gate, pgtrickle_internal.open_gate,
    pgtrickle_internal.may_drain, pgtrickle_internal.check_may_drain, pgtrickle_internal.check_not_copy, pgtrickle_internal.is_guarded,
    pgtrickle_internal.bound_relation, pgtrickle_internal.named_relation, pgtrickle_internal.shown_name, pgtrickle_internal.own_guard, pgtrickle_internal.restore_guard,
    pgtrickle_internal.has_moved, pgtrickle_internal.timeline, pgtrickle_internal.system_identifier, pgtrickle_internal.present_identity to public;

-- helpers that run as the sidecar's role and check every argument
grant execute on function
    pgtrickle_internal.register, pgtrickle_internal.change_query, pgtrickle_internal.change_options, pgtrickle_internal.change_status,
    pgtrickle_internal.ask_for_repair, pgtrickle_internal.note_always, pgtrickle_internal.note_enabled to public;

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
