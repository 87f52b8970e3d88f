-- reanalyse: analyse the query of a stream table again after something that it relies on has changed. The sidecar
-- runs it as its own role, in a separate transaction. Raises an error if the query can no longer be tracked;
-- otherwise it updates dependencies, buffers and triggers, and marks the stream table for a reload.
create or replace function pgtrickle_internal.reanalyse(id bigint, reason text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    query_view oid;
begin
    perform pgtrickle_internal.check_not_copy();
    perform from pgtrickle.pgt_stream_tables s where s.pgt_id = id for update;
    perform pgtrickle_internal.restore_guard(s.pgt_relid) from pgtrickle.pgt_stream_tables s where s.pgt_id = id;
    perform pgtrickle_internal.repair_sources_of(id);
    query_view := pgtrickle_internal.view_of_stored(id);
    perform pgtrickle_internal.adopt_query(id, query_view);
    perform pgtrickle_internal.drop_view(query_view);
    update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = reason,
        pgt_owner = (select c.relowner from pg_class c where c.oid = s.pgt_relid),
        status = case when s.status <> 'ERROR' then s.status when s.is_populated then 'ACTIVE'
            else 'INITIALIZING' end,
        last_error = case when s.status <> 'ERROR' then s.last_error end,
        retry_at = case when s.status <> 'ERROR' then s.retry_at end,
        consecutive_errors = case when s.status <> 'ERROR' then s.consecutive_errors else 0 end
    where s.pgt_id = id;
end
$$;

-- repair_sources_of: create the triggers that the sources of a stream table lack, and replace those that are
-- disabled or of the wrong level. For stream tables that missed nothing it records that we changed the triggers.
create or replace function pgtrickle_internal.repair_sources_of(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    source oid;
    intact bigint[];
begin
    for source in
        select d.source_relid from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_sources s on s.source_relid = d.source_relid
        join pg_class c on c.oid = d.source_relid
        where d.pgt_id = repair_sources_of.id and s.trigger_level <> 'none' order by 1
    loop
        intact := pgtrickle_internal.intact_readers(source);
        perform pgtrickle_internal.repair_source(source);
        perform pgtrickle_internal.note_own_triggers(source, intact, false);
    end loop;
end
$$;

-- check_constants: refuse to parse a query if parsing alone would run untrusted code. PostgreSQL evaluates
-- constants while it parses a query; values in an array or a composite type then pass the checks of their domains.
-- The types are found by the text, which has every cast in full: in a copy, nothing else is known about them yet.
create or replace function pgtrickle_internal.check_constants(query text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    untrusted oid;
begin
    -- most queries only have constants of built-in types
    if query !~ '::(?:"|[^"[:space:]()'',]*[.])' then
        return;
    end if;
    select min(f.id) into untrusted
    from pg_type t join pg_namespace n on n.oid = t.typnamespace
    cross join lateral (select format('::%I.%I', n.nspname, t.typname)) c(printed)
    cross join lateral pgtrickle_internal.untrusted_functions(array['pg_type'::regclass::oid], array[t.oid]) f(id)
    where t.oid >= 16384 and strpos(query, c.printed) > 0
        and query ~ (regexp_replace(c.printed, '([^[:alnum:]_])', '\\\1', 'g') || '(?![[:alnum:]_$])');
    if untrusted is not null then
        raise exception '%', format('the query calls %s, which %I could change to act with the rights of the sidecar', untrusted::regprocedure,
                (select pg_get_userbyid(p.proowner) from pg_proc p where p.oid = untrusted)) using
            errcode = 'TA003',
            hint = format('The function would run as %1$I. Let an administrator take it over: '
                'alter function %2$s owner to %1$I.', pg_get_userbyid(pgtrickle.sidecar_role()), untrusted::regprocedure);
    end if;
end
$$;

-- view_of_stored: the stored query as a temporary view; its names are complete, so no search_path matters.
create or replace function pgtrickle_internal.view_of_stored(id bigint) returns oid
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    view_name text := format('pgtrickle_%s', replace(gen_random_uuid()::text, '-', ''));
    query text := (select s.defining_query from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
begin
    perform pgtrickle_internal.check_constants(query);
    execute format('create temporary view %I as ', view_name) || query;
    return to_regclass('pg_temp.' || view_name);
end
$$;

-- changed_dependencies: the dependencies that differ from what was recorded, with both states; null if one no
-- longer exists.
create or replace function pgtrickle_internal.changed_dependencies(id bigint)
returns table (source_type text, source_relid oid, source_name text, stored jsonb, present jsonb)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select d.source_type, d.source_relid, case d.source_type when 'function' then d.source_name
            else format('%I.%I', d.source_schema, d.source_name) end, f.stored, f.present
    from pgtrickle.pgt_dependencies d
    cross join lateral (select d.schema_fingerprint::jsonb, pgtrickle_internal.fingerprint(d.source_type, d.source_relid,
        array(select number::smallint
            from jsonb_object_keys(coalesce(d.schema_fingerprint::jsonb -> 'columns', '{}')) number))
    ) f(stored, present)
    where d.pgt_id = id and f.stored is distinct from f.present
$$;
