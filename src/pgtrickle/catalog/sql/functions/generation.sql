-- generation: record which definitions have changed, so that every sidecar notices.

-- raise_generation: record that the definition or the dependencies of a stream table change with this transaction;
-- null stands for all stream tables. Each change is a row: a single counter would serialize all sessions that
-- define stream tables.
create or replace function pgtrickle_internal.raise_generation(id bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$ insert into pgtrickle.pgt_generation (pgt_id) values (id) $$;

create or replace function pgtrickle_internal.note_definition() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.raise_generation(case tg_op when 'DELETE' then old.pgt_id else new.pgt_id end);
    return null;
end
$$;

-- Refreshes write to the same rows: what they update (frontier, times) is not part of the definition.
create or replace trigger note_definition after insert or delete on pgtrickle.pgt_stream_tables
for each row execute function pgtrickle_internal.note_definition();

create or replace trigger note_change after update on pgtrickle.pgt_stream_tables
for each row when (
    (old.pgt_relid, old.pgt_schema, old.pgt_name, old.defining_query, old.schedule, old.refresh_mode, old.status,
        old.retry_at, old.is_populated, old.needs_reinit, old.initialize, old.settings, old.pooler_compatibility_mode,
        old.refresh_tier, old.diamond_consistency, old.diamond_schedule_policy, old.cdc_mode, old.append_only)
    is distinct from
    (new.pgt_relid, new.pgt_schema, new.pgt_name, new.defining_query, new.schedule, new.refresh_mode, new.status,
        new.retry_at, new.is_populated, new.needs_reinit, new.initialize, new.settings, new.pooler_compatibility_mode,
        new.refresh_tier, new.diamond_consistency, new.diamond_schedule_policy, new.cdc_mode, new.append_only))
execute function pgtrickle_internal.note_definition();
