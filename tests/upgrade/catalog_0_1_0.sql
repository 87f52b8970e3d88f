-- The installation of version 0.1.0 without stream tables, written by pg_dump of PostgreSQL 15.

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA pgtrickle;

ALTER SCHEMA pgtrickle OWNER TO trickle;

CREATE SCHEMA pgtrickle_changes;

ALTER SCHEMA pgtrickle_changes OWNER TO trickle;

CREATE SCHEMA pgtrickle_state;

ALTER SCHEMA pgtrickle_state OWNER TO trickle;

CREATE FUNCTION pgtrickle.add_columns(relation_id oid, query_view oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    has text[] := pgtrickle.columns_of(relation_id);
    wants text[] := pgtrickle.columns_of(query_view);
    added record;
begin
    if wants[:cardinality(has)] <> has then
        raise exception '%', format('the query has other columns than %s', pgtrickle.printed(relation_id)) using
            errcode = 'datatype_mismatch',
            detail = format('The table has (%s), the query (%s).',
                array_to_string(has, ', '), array_to_string(wants, ', ')),
            hint = 'New columns may only follow those it has. For others, drop the stream table and create '
                'it again.';
    end if;
    if cardinality(wants) = cardinality(has) then
        return;
    end if;
    for added in
        select attname, format_type(atttypid, atttypmod) as type, attcollation
        from pg_attribute where attrelid = query_view and attnum > cardinality(has) order by attnum
    loop
        execute format('alter table %s add column %I %s%s', pgtrickle.printed(relation_id), added.attname,
            added.type, (select format(' collate %I.%I', n.nspname, l.collname)
                from pg_collation l join pg_namespace n on n.oid = l.collnamespace
                where l.oid = added.attcollation));
    end loop;
    perform pgtrickle.replace_row_index(relation_id);
end
$$;

ALTER FUNCTION pgtrickle.add_columns(relation_id oid, query_view oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.adopt_query(id bigint, query_view oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    relation_id oid := (select s.pgt_relid from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    reader oid := (select relowner from pg_class where oid = relation_id);
begin
    if pgtrickle.columns_of(query_view) <> pgtrickle.columns_of(relation_id) then
        raise exception '%', format('the query does not have the columns of %s', pgtrickle.printed(relation_id))
        using errcode = 'datatype_mismatch', hint = 'Drop the stream table and create it again.';
    end if;
    perform pgtrickle.check_query(query_view, reader);
    update pgtrickle.pgt_stream_tables s
    set defining_query = pgtrickle.canonical_of(query_view), follows_clock = null
    where s.pgt_id = id;
    delete from pgtrickle.pgt_compiled p where p.pgt_id = id;
    delete from pgtrickle.pgt_dependencies d where d.pgt_id = id;
    perform pgtrickle.record_dependencies(id, query_view, reader);
    perform pgtrickle.check_cycle(id);
    perform case when d.source_type in ('table', 'stream_table')
        then pgtrickle.capture_source(d.source_relid, used.numbers)
        else pgtrickle.copy_source(d.source_relid, used.numbers) end
    from pgtrickle.pgt_dependencies d
    cross join lateral (select array(
        select a.attnum from pg_attribute a
        where a.attrelid = d.source_relid and a.attname = any (d.columns_used) order by a.attnum)) used(numbers)
    where d.pgt_id = id and d.source_type not in ('view', 'function')
    -- always in the same order, so that two of us cannot wait for each other
    order by d.source_relid;
    perform pgtrickle.raise_generation(id);
end
$$;

ALTER FUNCTION pgtrickle.adopt_query(id bigint, query_view oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.alter_options(id bigint, options jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    relation_id oid := pgtrickle.relation_of(id);
begin
    perform pgtrickle.prove_ownership(relation_id);
    perform pgtrickle.change_options(relation_id, options);
end
$$;

ALTER FUNCTION pgtrickle.alter_options(id bigint, options jsonb) OWNER TO trickle;

CREATE FUNCTION pgtrickle.alter_query(id bigint, query text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    relation_id oid := pgtrickle.relation_of(id);
    query_view oid := pgtrickle.view_of(query);
begin
    if pgtrickle.canonical_of(query_view)
        = (select s.defining_query from pgtrickle.pgt_stream_tables s where s.pgt_id = id)
    then
        perform pgtrickle.drop_view(query_view);
        return;
    end if;
    perform pgtrickle.prove_ownership(relation_id);
    perform pgtrickle.add_columns(relation_id, query_view);
    perform pgtrickle.change_query(relation_id, query_view, pgtrickle.session_settings(),
        pgtrickle.match_columns(relation_id));
    perform pgtrickle.enable_always_for(id);
    perform pgtrickle.drop_view(query_view);
end
$$;

ALTER FUNCTION pgtrickle.alter_query(id bigint, query text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.alter_status(id bigint, status text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    relation_id oid := pgtrickle.relation_of(id);
begin
    perform pgtrickle.prove_ownership(relation_id);
    perform pgtrickle.change_status(relation_id, pgtrickle.one_of('status', status, '{ACTIVE,SUSPENDED}'));
end
$$;

ALTER FUNCTION pgtrickle.alter_status(id bigint, status text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.alter_stream_table(name text, query text DEFAULT NULL::text, schedule text DEFAULT NULL::text, refresh_mode text DEFAULT NULL::text, status text DEFAULT NULL::text, cdc_mode text DEFAULT NULL::text, append_only boolean DEFAULT NULL::boolean, pooler_compatibility_mode boolean DEFAULT NULL::boolean, tier text DEFAULT NULL::text, diamond_consistency text DEFAULT NULL::text, diamond_schedule_policy text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    id bigint := pgtrickle.stream_table(name);
    asked jsonb := pgtrickle.options(schedule, refresh_mode, null, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier);
begin
    if schedule is null then
        asked := asked operator(pg_catalog.-) 'schedule';
    end if;
    if query is not null then
        perform pgtrickle.alter_query(id, query);
    end if;
    perform pgtrickle.alter_options(id, asked);
    if status is not null then
        perform pgtrickle.alter_status(id, status);
    end if;
end
$$;

ALTER FUNCTION pgtrickle.alter_stream_table(name text, query text, schedule text, refresh_mode text, status text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean, tier text, diamond_consistency text, diamond_schedule_policy text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.altered_condition(source oid, numbers smallint[]) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case when count(*) = 0 then 'false' else format('exists (select from (values %s) as e(name, type) '
        'where not exists (select from pg_catalog.pg_attribute a where a.attrelid operator(pg_catalog.=) tg_relid '
        'and a.attname operator(pg_catalog.=) e.name and a.atttypid operator(pg_catalog.=) e.type))',
        string_agg(format('(%L::pg_catalog.name, %s::pg_catalog.oid)', column_name, type_id), ', ')) end
    from pgtrickle.relied_on(source, numbers)
$$;

ALTER FUNCTION pgtrickle.altered_condition(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.answer_to(request bigint) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select coalesce(r.error_message, '') from pgtrickle.pgt_refresh_requests r
    where r.request_id = request and r.answered_at is not null
$$;

ALTER FUNCTION pgtrickle.answer_to(request bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.ask_for_repair(relation_id oid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.check_ownership(relation_id);
    update pgtrickle.pgt_stream_tables s set
        status = case when s.is_populated then 'ACTIVE' else 'INITIALIZING' end,
        consecutive_errors = 0, retry_at = null, last_error = null,
        needs_reinit = true, reinit_reason = 'repair was asked for'
    where s.pgt_relid = relation_id;
    perform pgtrickle.emit_alert('reinitialize_needed',
        jsonb_build_object('pgt_id', s.pgt_id, 'reason', s.reinit_reason))
    from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id;
end
$$;

ALTER FUNCTION pgtrickle.ask_for_repair(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.asking_role() RETURNS name
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case current_setting('role') when 'none' then session_user else current_setting('role')::name end
$$;

ALTER FUNCTION pgtrickle.asking_role() OWNER TO trickle;

CREATE FUNCTION pgtrickle.cache_stats() RETURNS TABLE(code_version text, entries bigint, bytes bigint, oldest timestamp with time zone, newest timestamp with time zone, generation bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select p.code_version, count(*), sum(octet_length(p.payload))::bigint, min(p.compiled_at), max(p.compiled_at),
        max(p.generation)
    from pgtrickle.pgt_compiled p group by p.code_version order by max(p.compiled_at) desc
$$;

ALTER FUNCTION pgtrickle.cache_stats() OWNER TO trickle;

CREATE FUNCTION pgtrickle.canonical_of(query_view oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select rtrim(btrim(pg_get_viewdef(query_view), E' \n'), ';') $$;

ALTER FUNCTION pgtrickle.canonical_of(query_view oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.capture_shape(source oid, numbers smallint[]) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select md5(concat_ws('|', pgtrickle.altered_condition(source, intact.numbers), (
        select string_agg(pgtrickle.captured_expression(source, n), ',' order by n)
        from unnest(intact.numbers) n)))
    from pgtrickle.intact_columns(source, numbers) as intact(numbers)
$$;

ALTER FUNCTION pgtrickle.capture_shape(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.capture_source(source oid, numbers smallint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET client_min_messages TO 'warning'
    AS $$
declare
    level text := pgtrickle.trigger_level(source);
    captured pgtrickle.pgt_sources;
    patience text := current_setting('lock_timeout');
    has_new_shape boolean;
    is_other_level boolean;
begin
    -- the share lock keeps the capture from being released under us
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for key share;
    if found and numbers <@ captured.columns_captured and captured.trigger_level = level
        and captured.shape = pgtrickle.capture_shape(source, captured.columns_captured) and not exists (
        select from pgtrickle.wanted_triggers(source, level) w where w.trigger_id is null)
    then
        return;
    end if;
    if patience = '0' or patience::interval > interval '2s' then
        perform set_config('lock_timeout', '2s', true);
    end if;
    insert into pgtrickle.pgt_sources (source_relid, trigger_level) values (source, level)
    on conflict (source_relid) do nothing;
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for update;
    is_other_level := captured.trigger_level <> level;
    perform pgtrickle.refuse_differing_expressions(source, numbers);
    update pgtrickle.pgt_sources s set trigger_level = level, columns_captured = array(
        select n from (select unnest(numbers) union select unnest(s.columns_captured)) u(n) order by n)
    where s.source_relid = source returning * into captured;
    if is_other_level then
        execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
    end if;
    perform pgtrickle.create_buffers(source, captured.columns_captured);
    has_new_shape := is_other_level
        or captured.shape is distinct from pgtrickle.capture_shape(source, captured.columns_captured);
    perform pgtrickle.compose_capture(source);
    -- writers under way still run the old function: replacing every trigger waits for them to end
    perform pgtrickle.create_trigger(source, level, w.relation_id, w.trigger_name, w.event)
    from pgtrickle.wanted_triggers(source, level) w
    where has_new_shape or w.trigger_id is null;
    perform set_config('lock_timeout', patience, true);
    perform pgtrickle.enable_always(source);
    perform pgtrickle.note_always(source);
exception when lock_not_available then
    raise exception '%', format('table %s is busy', pgtrickle.printed(source)) using
        errcode = 'lock_not_available',
        hint = 'Another transaction writes to it. Try again when that has ended.';
end
$$;

ALTER FUNCTION pgtrickle.capture_source(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.captured_expression(source oid, number smallint) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case when a.attgenerated = 'v' then '(' || pg_get_expr(e.adbin, e.adrelid) || ')'
        else format('r.%I', a.attname) end
    from pg_attribute a
    left join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
    where a.attrelid = source and a.attnum = number
$$;

ALTER FUNCTION pgtrickle.captured_expression(source oid, number smallint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.change_buffer_sizes() RETURNS TABLE(stream_table text, source_table text, source_oid oid, cdc_mode text, pending_rows bigint, buffer_bytes bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    reading record;
begin
    for reading in
        select pgtrickle.printed(s.pgt_relid) as reader, pgtrickle.printed(d.source_relid) as source,
            d.source_relid as source_id, d.cdc_mode as mode,
            case when d.source_type = 'stream_table' then coalesce(s.upstream_frontier, s.frontier)
                else s.frontier end as seen
        from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
        join pgtrickle.pgt_sources c on c.source_relid = d.source_relid
        where d.source_type not in ('view', 'function')
        order by 1, 2
    loop
        stream_table := reading.reader;
        source_table := reading.source;
        source_oid := reading.source_id;
        cdc_mode := reading.mode;
        execute format(
            'select count(*) from (select xid, weight from pgtrickle_changes.changes_%1$s_0 union all '
            'select xid, weight from pgtrickle_changes.changes_%1$s_1) b '
            'where $1 is null or (b.xid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(b.xid, $1))',
            reading.source_id)
        into pending_rows using reading.seen;
        buffer_bytes := pg_total_relation_size(format('pgtrickle_changes.changes_%s_0', reading.source_id)::regclass)
            + pg_total_relation_size(format('pgtrickle_changes.changes_%s_1', reading.source_id)::regclass);
        return next;
    end loop;
end
$_$;

ALTER FUNCTION pgtrickle.change_buffer_sizes() OWNER TO trickle;

CREATE FUNCTION pgtrickle.change_options(relation_id oid, options jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id);
    mode_before text := (select s.refresh_mode from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
begin
    perform pgtrickle.check_ownership(relation_id);
    perform pgtrickle.store_options(id, options);
    update pgtrickle.pgt_stream_tables s
    set effective_refresh_mode = null, downgrade_reason = null
    where s.pgt_id = id and s.refresh_mode <> mode_before;
    delete from pgtrickle.pgt_compiled p using pgtrickle.pgt_stream_tables s
    where p.pgt_id = id and s.pgt_id = id and s.refresh_mode <> mode_before;
end
$$;

ALTER FUNCTION pgtrickle.change_options(relation_id oid, options jsonb) OWNER TO trickle;

CREATE FUNCTION pgtrickle.change_query(relation_id oid, query_view oid, settings jsonb, match_columns text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id);
begin
    perform pgtrickle.check_ownership(relation_id);
    perform pgtrickle.check_view(query_view, relation_id);
    perform pgtrickle.adopt_query(id, query_view);
    update pgtrickle.pgt_stream_tables s set
        settings = change_query.settings, match_columns = change_query.match_columns,
        effective_refresh_mode = null, downgrade_reason = null, status = 'INITIALIZING', is_populated = false,
        frontier = null, upstream_frontier = null, consecutive_errors = 0, last_error = null, retry_at = null,
        needs_reinit = true, reinit_reason = 'its query was altered'
    where s.pgt_id = id;
end
$$;

ALTER FUNCTION pgtrickle.change_query(relation_id oid, query_view oid, settings jsonb, match_columns text[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.change_status(relation_id oid, status text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    before record;
begin
    perform pgtrickle.check_ownership(relation_id);
    select s.pgt_id, s.status into before from pgtrickle.pgt_stream_tables s where s.pgt_relid = relation_id;
    update pgtrickle.pgt_stream_tables s set
        status = case when pgtrickle.one_of('status', change_status.status, '{ACTIVE,SUSPENDED}') = 'SUSPENDED'
            then 'SUSPENDED' when s.is_populated then 'ACTIVE' else 'INITIALIZING' end,
        consecutive_errors = 0, retry_at = null,
        last_error = case when change_status.status = 'SUSPENDED' then s.last_error end
    where s.pgt_relid = relation_id;
    if before.status in ('SUSPENDED', 'ERROR') and upper(btrim(change_status.status)) = 'ACTIVE' then
        perform pgtrickle.emit_alert('resumed', jsonb_build_object('pgt_id', before.pgt_id));
    end if;
end
$$;

ALTER FUNCTION pgtrickle.change_status(relation_id oid, status text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.changed_dependencies(id bigint) RETURNS TABLE(source_type text, source_relid oid, source_name text, stored jsonb, present jsonb)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select d.source_type, d.source_relid, case d.source_type when 'function' then d.source_name
            else format('%I.%I', d.source_schema, d.source_name) end, f.stored, f.present
    from pgtrickle.pgt_dependencies d
    cross join lateral (select d.schema_fingerprint::jsonb, pgtrickle.fingerprint(d.source_type, d.source_relid,
        array(select number::smallint
            from jsonb_object_keys(coalesce(d.schema_fingerprint::jsonb -> 'columns', '{}')) number))
    ) f(stored, present)
    where d.pgt_id = id and f.stored is distinct from f.present
$$;

ALTER FUNCTION pgtrickle.changed_dependencies(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_copying(relation_id oid, columns smallint[]) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    sidecar oid := pgtrickle.sidecar_role();
    printed text := pgtrickle.printed(relation_id);
begin
    if not pgtrickle.may_select(sidecar, relation_id, columns) then
        raise exception '%', format('pgtrickle may not read %s', printed) using
            errcode = 'insufficient_privilege',
            hint = format('grant select on %s to %I', printed, pg_get_userbyid(sidecar));
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_copying(relation_id oid, columns smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_cron(schedule text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    given text := lower(btrim(schedule, E' \t\n\r'));
    parts text[] := regexp_split_to_array(given, '\s+');
    days integer[];
    months integer[];
begin
    if given ~ '^@' then
        if given not in ('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly') then
            raise exception '%', format('%L is not a schedule: there is no %s', schedule, given) using
                errcode = 'invalid_parameter_value', hint = pgtrickle.cron_hint();
        end if;
        return;
    end if;
    if cardinality(parts) = 5 then
        parts := '0'::text || parts;
    end if;
    perform pgtrickle.cron_field(schedule, 'second', parts[1], 0, 59, '{}'),
        pgtrickle.cron_field(schedule, 'minute', parts[2], 0, 59, '{}'),
        pgtrickle.cron_field(schedule, 'hour', parts[3], 0, 23, '{}');
    days := pgtrickle.cron_field(schedule, 'day of the month', parts[4], 1, 31, '{}');
    months := pgtrickle.cron_field(schedule, 'month', parts[5], 1, 12,
        '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
    perform pgtrickle.cron_field(schedule, 'day of the week', parts[6], 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
    if parts[4] !~ '^\*' and parts[6] ~ '^\*' and not exists (
        select from unnest(months) month
        where (select min(day) from unnest(days) day)
            <= ('{31,29,31,30,31,30,31,31,30,31,30,31}'::integer[])[month])
    then
        raise exception '%', format('%L never comes: no such month has a day %s', schedule,
                (select min(day) from unnest(days) day)) using
            errcode = 'invalid_parameter_value',
            hint = 'Name a day that the month has; for its last day, refresh on the first of the next.';
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_cron(schedule text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_cycle(id bigint) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (
        with recursive upstream(pgt_id) as (
            select s.pgt_id from pgtrickle.pgt_dependencies d
            join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
            where d.pgt_id = id
            union
            select s.pgt_id from upstream u
            join pgtrickle.pgt_dependencies d on d.pgt_id = u.pgt_id
            join pgtrickle.pgt_stream_tables s on s.pgt_relid = d.source_relid
        )
        select from upstream u where u.pgt_id = id)
    then
        raise exception '%', format('stream table %s would read itself',
                (select pgtrickle.printed(s.pgt_relid) from pgtrickle.pgt_stream_tables s where s.pgt_id = id)) using
            errcode = 'invalid_object_definition',
            hint = 'A stream table may read others only in one direction.';
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_cycle(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_functions(query_view oid, reader oid) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    called record;
    is_ours boolean;
begin
    for called in
        select p.oid, p.oid::regprocedure::text as printed, p.proname, p.provolatile, p.proowner
        from pgtrickle.functions_of(query_view, reader) f(id) join pg_proc p on p.oid = f.id
        order by p.provolatile desc, p.oid
    loop
        is_ours := called.oid >= 16384;
        if called.provolatile = 'v' then
            raise exception '%', format('the query calls the volatile function %s', called.printed) using
                errcode = 'feature_not_supported',
                hint = 'Its answer changes from call to call, so no stored result can be right. '
                    'Remove it, or declare it immutable if it really is.';
        elsif called.provolatile = 's' and (is_ours
            or (called.proname ~ '^(pg_|has_|txid_|inet_(client|server)_|current_|session_|row_security|'
                    '(obj|col|shobj)_description|to_reg|version$|(table|schema|database|query|cursor)_to_xml)'
                and called.proname <> 'pg_typeof'))
        then
            raise exception '%', format('the query calls %s, which may read more than its arguments',
                    called.printed) using
                errcode = 'feature_not_supported',
                hint = 'A stream table follows only the tables its query names. '
                    'If the function reads nothing but its arguments, declare it immutable.';
        elsif is_ours and not pgtrickle.is_trusted(called.proowner) then
            raise exception '%', format('the query calls %s, which %I could make read in its name',
                    called.printed, pg_get_userbyid(called.proowner)) using
                errcode = 'insufficient_privilege',
                hint = format('The function would run as %1$I. Let an administrator take it over: '
                    'alter function %2$s owner to %1$I.',
                    pg_get_userbyid(pgtrickle.sidecar_role()), called.printed);
        elsif not has_function_privilege(reader, called.oid, 'EXECUTE') then
            raise exception '%', format('permission denied for function %s', called.printed) using
                errcode = 'insufficient_privilege',
                hint = format('%I may not execute it.', pg_get_userbyid(reader));
        elsif not has_function_privilege(pgtrickle.sidecar_role(), called.oid, 'EXECUTE') then
            raise exception '%', format('pgtrickle may not execute function %s', called.printed) using
                errcode = 'insufficient_privilege',
                hint = format('grant execute on function %s to %I', called.printed,
                    pg_get_userbyid(pgtrickle.sidecar_role()));
        end if;
    end loop;
end
$_$;

ALTER FUNCTION pgtrickle.check_functions(query_view oid, reader oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_may_drain() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not (pg_has_role(pgtrickle.asking_role(), pgtrickle.sidecar_role(), 'MEMBER') or exists (
        select from pg_database d where d.datname = current_database()
            and pg_has_role(pgtrickle.asking_role(), d.datdba, 'MEMBER')))
    then
        raise exception 'only who owns the database, or pgtrickle in it, may drain it' using
            errcode = 'insufficient_privilege',
            hint = format('Connect as %I.', pg_get_userbyid(pgtrickle.sidecar_role()));
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_may_drain() OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_may_gate(relation_id oid) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not coalesce(has_table_privilege(pgtrickle.asking_role(), relation_id, 'INSERT, UPDATE, DELETE, TRUNCATE'),
        false)
    then
        raise exception '%', format('only who may write to %s may gate it', pgtrickle.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = (select format('It belongs to %I.', pg_get_userbyid(relowner)) from pg_class
                where oid = relation_id);
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_may_gate(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_may_refresh(id bigint) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
declare
    relation_id oid := pgtrickle.relation_of(id);
    owner_id oid := (select c.relowner from pg_catalog.pg_class c where c.oid = relation_id);
begin
    if not pg_catalog.pg_has_role(owner_id, 'USAGE') then
        raise exception '%', pg_catalog.format('only its owner may refresh stream table %s',
                pgtrickle.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = pg_catalog.format('It belongs to %I.', pg_catalog.pg_get_userbyid(owner_id));
    end if;
    perform pgtrickle.check_waits_for_nothing(id);
end
$$;

ALTER FUNCTION pgtrickle.check_may_refresh(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_ownership(relation_id oid) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (
        select from pg_trigger t
        join pg_proc p on p.oid = t.tgfoid and p.pronamespace = 'pgtrickle'::regnamespace
            and p.proname = 'refuse_direct_write'
        join pg_description d on d.classoid = 'pg_trigger'::regclass and d.objoid = t.oid and d.objsubid = 0
        where t.tgrelid = relation_id and t.tgname = 'pgtrickle_guard'
            and d.description = 'last defined in transaction ' || pg_current_xact_id()::text)
    then
        raise exception '%', format('nobody has shown to own stream table %s', pgtrickle.printed(relation_id))
        using errcode = 'insufficient_privilege',
            hint = 'Use pgtrickle.create_stream_table, alter_stream_table and drop_stream_table.';
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_ownership(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_query(query_view oid, reader oid) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.check_relation(r.relation_id, r.checked_as, reader, r.columns)
    from (select * from pgtrickle.relations_of(query_view, reader) order by relation_id) r;
    perform pgtrickle.check_rules(query_view, reader);
    perform pgtrickle.check_functions(query_view, reader);
end
$$;

ALTER FUNCTION pgtrickle.check_query(query_view oid, reader oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_relation(relation_id oid, checked_as oid, reader oid, columns smallint[]) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    sidecar oid := pgtrickle.sidecar_role();
    printed text := pgtrickle.printed(relation_id);
    unfit text := pgtrickle.unfit_relation(relation_id);
    kind "char" := (select relkind from pg_class where oid = relation_id);
    namespace oid := (select relnamespace from pg_class where oid = relation_id);
    restricted name;
begin
    if unfit is not null then
        raise exception '%', format('the query reads %s %s', unfit, printed) using
            errcode = 'feature_not_supported',
            hint = 'pgtrickle follows ordinary, partitioned and foreign tables, views, materialized views '
                'and stream tables.';
    end if;
    if not pgtrickle.may_select(checked_as, relation_id, columns) then
        raise exception '%', format('permission denied for table %s', printed) using
            errcode = 'insufficient_privilege',
            hint = format('%I may not select from it.', pg_get_userbyid(checked_as));
    end if;
    if not has_schema_privilege(sidecar, namespace, 'USAGE') then
        raise exception '%', format('pgtrickle may not use schema %s', namespace::regnamespace) using
            errcode = 'insufficient_privilege',
            hint = format('grant usage on schema %s to %I', namespace::regnamespace, pg_get_userbyid(sidecar));
    end if;
    if kind = 'v' then
        return;
    end if;
    if kind in ('m', 'f') then
        perform pgtrickle.check_copying(relation_id, columns);
        return;
    end if;
    if not pgtrickle.may_select(sidecar, relation_id, columns)
        or exists (select from pgtrickle.tree_of(relation_id) t(id)
            where not has_table_privilege(sidecar, t.id, 'TRIGGER'))
    then
        raise exception '%', format('pgtrickle may not follow table %s', printed) using
            errcode = 'insufficient_privilege',
            hint = (select 'grant select, trigger on '
                    || string_agg(pgtrickle.printed(t.id), ', ' order by t.id)
                    || format(' to %I', pg_get_userbyid(sidecar))
                from pgtrickle.tree_of(relation_id) t(id)
                where t.id = relation_id or not has_table_privilege(sidecar, t.id, 'TRIGGER'));
    end if;
    select r.rolname into restricted from pg_roles r
    where r.oid in (checked_as, reader, sidecar) and pgtrickle.row_security_applies(relation_id, r.oid)
    order by r.oid = sidecar limit 1;
    if restricted is not null then
        raise exception '%', format('row-level security hides rows of %s from %I', printed, restricted) using
            errcode = 'feature_not_supported',
            hint = format('A stream table would show too many rows, or too few. Give %1$I the attribute '
                'BYPASSRLS, or keep the allowed rows in a table of their own.', restricted);
    end if;
end
$_$;

ALTER FUNCTION pgtrickle.check_relation(relation_id oid, checked_as oid, reader oid, columns smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_room(schema_name text, table_name text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    sidecar oid := pgtrickle.sidecar_role();
    namespace oid := (select oid from pg_namespace where nspname = schema_name);
begin
    if namespace is null or schema_name in ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_state')
        or schema_name ~ '^pg_'
    then
        raise exception '%', format('cannot create a stream table in schema %I', schema_name) using
            errcode = 'invalid_schema_name', hint = 'Name a schema that exists and is yours to use.';
    end if;
    if exists (select from pg_class where relname = table_name and relnamespace = namespace)
        or exists (select from pg_type where typname = table_name and typnamespace = namespace)
    then
        raise exception '%', format('%I.%I exists already', schema_name, table_name) using
            errcode = 'duplicate_table',
            hint = 'Choose another name, or use pgtrickle.create_or_replace_stream_table for a stream table.';
    end if;
    if not has_schema_privilege(namespace, 'CREATE') then
        raise exception '%', format('permission denied for schema %I', schema_name) using
            errcode = 'insufficient_privilege',
            hint = format('grant create on schema %I to %I', schema_name, current_user);
    end if;
    if not has_schema_privilege(sidecar, namespace, 'USAGE') then
        raise exception '%', format('pgtrickle may not use schema %I', schema_name) using
            errcode = 'insufficient_privilege',
            hint = format('grant usage on schema %I to %I', schema_name, pg_get_userbyid(sidecar));
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_room(schema_name text, table_name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_rules(query_view oid, reader oid) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    problem text;
begin
    select case
        when action ~ ':tablesample \{' then 'samples a table (TABLESAMPLE)'
        when action ~ ':rowMarks \(' then 'locks rows (FOR UPDATE or FOR SHARE)'
        when action ~ '\{SQLVALUEFUNCTION :op (9|1[0-4]) ' then 'asks who is reading (CURRENT_USER or the like)'
        when action ~ '\{VAR :varno \d+ :varattno -\d+ ' then 'reads a system column (ctid, xmin, tableoid or the like)'
        end into problem
    from pgtrickle.rules_of(query_view, reader)
    order by 1 limit 1;
    if problem is not null then
        raise exception 'the query %', problem using
            errcode = 'feature_not_supported',
            hint = 'Its answer does not follow from the rows of its sources alone. Remove that part.';
    end if;
    if exists (
        select from pgtrickle.rules_of(query_view, reader) r
        join pgtrickle.relations_of(query_view, reader) f on true
        join pg_inherits i on i.inhparent = f.relation_id
        where pg_get_viewdef(r.view_id) ~ '\mONLY\M')
    then
        raise exception 'the query reads a table without its children (ONLY)' using
            errcode = 'feature_not_supported',
            hint = 'Read the whole table, or keep the rows you want in a table of their own.';
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_rules(query_view oid, reader oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_view(query_view oid, relation_id oid) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (
        select from pg_class v join pg_class t on t.oid = relation_id
        where v.oid = query_view and v.relkind = 'v' and v.relnamespace = pg_my_temp_schema()
            and v.relowner = t.relowner and t.relkind = 'r' and t.relpersistence = 'p' and not t.relispartition)
    then
        raise exception 'not a query for that table' using errcode = 'insufficient_privilege',
            hint = 'Use pgtrickle.create_stream_table and alter_stream_table.';
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_view(query_view oid, relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.check_waits_for_nothing(id bigint) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if pgtrickle.waits_for(id) is not null then
        raise exception '%', format('%s is not refreshed now: %s',
                (select pgtrickle.printed(s.pgt_relid) from pgtrickle.pgt_stream_tables s where s.pgt_id = id),
                pgtrickle.waits_for(id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = case when exists (select from pgtrickle.pgt_drain)
                then 'select pgtrickle.undrain() lets refreshes start again.'
                else 'select pgtrickle.ungate_source(…) opens the gate; pgtrickle.gated_sources() lists them.' end;
    end if;
end
$$;

ALTER FUNCTION pgtrickle.check_waits_for_nothing(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.clear_caches() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with raised as (
        update pgtrickle.pgt_caches set generation = generation + 1, cleared_at = clock_timestamp()
    ), gone as (
        delete from pgtrickle.pgt_compiled returning 1
    )
    select count(*) from gone
$$;

ALTER FUNCTION pgtrickle.clear_caches() OWNER TO trickle;

CREATE FUNCTION pgtrickle.close_gate(relation_id oid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.check_may_gate(relation_id);
    delete from pgtrickle.pgt_gates g where not exists (select from pg_class c where c.oid = g.source_relid);
    insert into pgtrickle.pgt_gates (source_relid, gated_by)
    select relation_id, pgtrickle.asking_role() where pgtrickle.is_source(relation_id)
    on conflict do nothing;
    if found then
        perform pgtrickle.raise_generation(null);
    end if;
end
$$;

ALTER FUNCTION pgtrickle.close_gate(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.columns_of(relation_id oid) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select coalesce(array_agg(format('%I %s', attname, format_type(atttypid, null)) order by attnum), '{}')
    from pg_attribute where attrelid = relation_id and attnum > 0 and not attisdropped
$$;

ALTER FUNCTION pgtrickle.columns_of(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.compare_source(source oid) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET extra_float_digits TO '1'
    SET "DateStyle" TO 'ISO'
    SET "IntervalStyle" TO 'postgres'
    AS $$
declare
    captured pgtrickle.pgt_sources;
    present text;
    changes bigint;
begin
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for no key update;
    if not found or not exists (select from pg_class where oid = source) then
        return 0;
    end if;
    -- read before the rows: if the view is refreshed in between, the versions differ and we compare again
    present := pgtrickle.source_version(source);
    if pgtrickle.misfit(source) is not null then
        perform pgtrickle.fit_copy(source, captured.columns_captured);
    elsif captured.filled_at is not null and captured.version = present then
        return 0;
    end if;
    execute pgtrickle.comparison(source, format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer),
        captured.filled_at is null);
    get diagnostics changes = row_count;
    if changes > 0 then
        perform pgtrickle.touch(source);
    end if;
    update pgtrickle.pgt_sources s set version = present, filled_at = coalesce(s.filled_at, clock_timestamp())
    where s.source_relid = source and (s.filled_at is null or s.version is distinct from present);
    return changes;
end
$$;

ALTER FUNCTION pgtrickle.compare_source(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.comparison(source oid, buffer text, is_first boolean) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select format($body$
        with present as materialized (
            select row(%2$s)::text as line%3$s from %6$s
        ), stored as materialized (
            select ctid as place, row(%2$s)::text as line from %7$s
        ), differing as materialized (
            select line, sum(weight) as weight
            from (select line, 1 as weight from present union all select line, -1 from stored) counted
            group by line having sum(weight) <> 0
        ), come as materialized (
            select * from (
                select p.*, d.weight, row_number() over (partition by p.line) as number
                from present p join differing d on d.line = p.line where d.weight > 0) p
            where p.number <= p.weight
        ), gone as (
            delete from %7$s c using (
                select s.place, d.weight, row_number() over (partition by s.line) as number
                from stored s join differing d on d.line = s.line where d.weight < 0) s
            where c.ctid = s.place and s.number <= -s.weight
            returning s.place%4$s
        ), added as (
            insert into %7$s %5$s select %1$s from come
        )
        insert into %8$s (weight%9$s)
        select 1%9$s from come where not %10$L union all select -1%9$s from gone where not %10$L
        $body$,
        string_agg(format('c%s', a.attnum), ', ' order by a.attnum),
        string_agg(format('%I', a.attname), ', ' order by a.attnum),
        string_agg(format(', %I as c%s', a.attname, a.attnum), '' order by a.attnum),
        string_agg(format(', c.%I as c%s', a.attname, a.attnum), '' order by a.attnum),
        '(' || string_agg(format('%I', a.attname), ', ' order by a.attnum) || ')',
        pgtrickle.printed(source), pgtrickle.copy_of(source), buffer,
        string_agg(format(', c%s', a.attnum), '' order by a.attnum), is_first)
    from pgtrickle.pgt_sources s
    join pg_attribute a on a.attrelid = s.source_relid and a.attnum = any (s.columns_captured) and not a.attisdropped
    where s.source_relid = source
$_$;

ALTER FUNCTION pgtrickle.comparison(source oid, buffer text, is_first boolean) OWNER TO trickle;

CREATE FUNCTION pgtrickle.compose_capture(source oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    captured pgtrickle.pgt_sources;
    numbers smallint[];
    is_by_row boolean;
    body text := $body$
#variable_conflict use_column
declare
    is_altered boolean := false;
begin
    if tg_relid operator(pg_catalog.<>) %1$s::pg_catalog.oid then
        if not exists (
            with recursive up(id) as (
                select tg_relid
                union
                select i.inhparent
                from up join pg_catalog.pg_inherits i on i.inhrelid operator(pg_catalog.=) up.id
            )
            select from up where up.id operator(pg_catalog.=) %1$s::pg_catalog.oid)
        then
            return null;
        end if;
        is_altered := %2$s;
    elsif tg_op operator(pg_catalog.=) 'INSERT' then
        is_altered := %9$s;
    elsif tg_op operator(pg_catalog.=) 'UPDATE' then
        is_altered := %9$s;
    elsif tg_op operator(pg_catalog.=) 'DELETE' then
        is_altered := %10$s;
    end if;
    if is_altered or tg_op operator(pg_catalog.=) 'TRUNCATE' then
        insert into %3$s (weight) values (0);
    elsif tg_op operator(pg_catalog.=) 'INSERT' then
        insert into %3$s (weight%4$s) select 1%5$s from %7$s;
    elsif tg_op operator(pg_catalog.=) 'DELETE' then
        insert into %3$s (weight%4$s) select -1%5$s from %6$s;
    else
        insert into %3$s (weight%4$s) select -1%5$s from %6$s union all select 1%5$s from %7$s;
    end if;
    -- a statement that changed no row is nobody's business
    if found then
        %8$s
    end if;
    return null;
end
$body$;
begin
    select * into strict captured from pgtrickle.pgt_sources s where s.source_relid = source;
    numbers := pgtrickle.intact_columns(source, captured.columns_captured);
    is_by_row := captured.trigger_level = 'row';
    execute format(
        'create or replace function pgtrickle_changes.capture_%s() returns trigger '
        'language plpgsql security definer %s as %L',
        source, case when exists (
            select from pg_attribute a
            where a.attrelid = source and a.attnum = any (numbers) and a.attgenerated = 'v')
            then 'set search_path = pg_catalog, pg_temp' else '' end,
        format(body, source, pgtrickle.altered_condition(source, numbers),
            format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer),
            (select string_agg(format(', c%s', n), '' order by n) from unnest(numbers) n),
            (select string_agg(', ' || pgtrickle.captured_expression(source, n), '' order by n)
                from unnest(numbers) n),
            case when is_by_row then '(select old.*) r' else 'old_rows r' end,
            case when is_by_row then '(select new.*) r' else 'new_rows r' end,
            pgtrickle.touching(source, is_by_row),
            case when is_by_row then pgtrickle.altered_condition(source, numbers)
                else pgtrickle.planned_condition(source, numbers, 'new_rows') end,
            case when is_by_row then pgtrickle.altered_condition(source, numbers)
                else pgtrickle.planned_condition(source, numbers, 'old_rows') end));
    execute format('revoke all on function pgtrickle_changes.capture_%s() from public', source);
    update pgtrickle.pgt_sources s set shape = pgtrickle.capture_shape(source, s.columns_captured)
    where s.source_relid = source;
end
$_$;

ALTER FUNCTION pgtrickle.compose_capture(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.copy_of(source oid) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select format('pgtrickle_state.copy_of_%s', source) $$;

ALTER FUNCTION pgtrickle.copy_of(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.copy_source(source oid, numbers smallint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET client_min_messages TO 'warning'
    SET lock_timeout TO '2s'
    AS $$
declare
    captured pgtrickle.pgt_sources;
begin
    select * into captured from pgtrickle.pgt_sources s where s.source_relid = source for key share;
    if found and numbers <@ captured.columns_captured and pgtrickle.misfit(source) is null then
        return;
    end if;
    insert into pgtrickle.pgt_sources (source_relid, trigger_level) values (source, 'none')
    on conflict (source_relid) do nothing;
    perform from pgtrickle.pgt_sources s where s.source_relid = source for update;
    update pgtrickle.pgt_sources s set version = null, columns_captured = array(
        select n from (select unnest(numbers) union select unnest(s.columns_captured)) u(n) order by n)
    where s.source_relid = source returning * into captured;
    perform pgtrickle.fit_copy(source, captured.columns_captured);
    perform pgtrickle.index_copy(source, captured.columns_captured);
exception when lock_not_available then
    raise exception '%', format('%s is busy', pgtrickle.printed(source)) using
        errcode = 'lock_not_available',
        hint = 'A refresh is reading it. Try again when that has ended.';
end
$$;

ALTER FUNCTION pgtrickle.copy_source(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_buffers(source oid, numbers smallint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    buffer text;
    number smallint;
begin
    foreach buffer in array array[format('changes_%s_0', source), format('changes_%s_1', source)] loop
        if to_regclass('pgtrickle_changes.' || buffer) is null then
            execute format(
                'create table pgtrickle_changes.%I ('
                'xid xid8 not null default pg_current_xact_id(), weight smallint not null)', buffer);
            execute format('create index on pgtrickle_changes.%I (xid)', buffer);
        end if;
        for number in select n from unnest(numbers) n
            join pg_attribute a on a.attrelid = source and a.attnum = n and not a.attisdropped
        loop
            if exists (
                select from pg_attribute a join pg_attribute b
                    on b.attrelid = to_regclass('pgtrickle_changes.' || buffer) and b.attname = 'c' || a.attnum
                where a.attrelid = source and a.attnum = number and b.atttypid <> a.atttypid)
            then
                execute format('alter table pgtrickle_changes.%I drop column %I', buffer, 'c' || number);
            end if;
            execute (
                select format('alter table pgtrickle_changes.%I add column if not exists %I %s%s',
                    buffer, 'c' || a.attnum, format_type(a.atttypid, -1),
                    case when a.attcollation <> 0 then (
                        select format(' collate %I.%I', n.nspname, l.collname)
                        from pg_collation l join pg_namespace n on n.oid = l.collnamespace
                        where l.oid = a.attcollation) else '' end)
                from pg_attribute a where a.attrelid = source and a.attnum = number);
        end loop;
    end loop;
end
$$;

ALTER FUNCTION pgtrickle.create_buffers(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_or_replace_stream_table(name text, query text, schedule text DEFAULT 'calculated'::text, refresh_mode text DEFAULT 'AUTO'::text, initialize boolean DEFAULT true, diamond_consistency text DEFAULT NULL::text, diamond_schedule_policy text DEFAULT NULL::text, cdc_mode text DEFAULT NULL::text, append_only boolean DEFAULT false, pooler_compatibility_mode boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    parts text[] := pgtrickle.new_name(name);
    existing bigint := pgtrickle.find_stream_table(pg_catalog.format('%I.%I', parts[1], parts[2]));
begin
    if existing is null then
        perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize,
            diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode);
    else
        perform pgtrickle.alter_options(existing, pgtrickle.options(schedule, refresh_mode, initialize,
            diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode));
        perform pgtrickle.alter_query(existing, query);
    end if;
end
$$;

ALTER FUNCTION pgtrickle.create_or_replace_stream_table(name text, query text, schedule text, refresh_mode text, initialize boolean, diamond_consistency text, diamond_schedule_policy text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_row_index(relation_id oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    table_name name := (select relname from pg_class where oid = relation_id);
    namespace oid := (select relnamespace from pg_class where oid = relation_id);
    index_name name;
    number integer := 0;
begin
    loop
        index_name := left(table_name::text, 63);
        while octet_length(index_name || '_pgtrickle_row' || coalesce(nullif(number, 0)::text, '')) > 63 loop
            index_name := left(index_name::text, -1);
        end loop;
        index_name := index_name || '_pgtrickle_row' || coalesce(nullif(number, 0)::text, '');
        exit when not exists (select from pg_class where relname = index_name and relnamespace = namespace);
        number := number + 1;
    end loop;
    execute format('create index %I on %s (hash_record_extended(row(%s), 0))', index_name,
        pgtrickle.printed(relation_id), array_to_string(pgtrickle.match_columns(relation_id), ', '));
exception when invalid_object_definition or feature_not_supported or undefined_function then
    raise notice '%', format('%s gets no index on whole rows: %s', pgtrickle.printed(relation_id), sqlerrm);
end
$$;

ALTER FUNCTION pgtrickle.create_row_index(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_storage(schema_name text, table_name text, query_view oid) RETURNS oid
    LANGUAGE plpgsql
    AS $$
declare
    printed text := pg_catalog.format('%I.%I', schema_name, table_name);
    relation_id oid;
begin
    if pg_catalog.cardinality(pgtrickle.columns_of(query_view)) = 0 then
        raise exception 'the query has no columns' using
            errcode = 'invalid_table_definition', hint = 'Select at least one column.';
    end if;
    begin
        execute pg_catalog.format('create table %s as table %s with no data',
            printed, pgtrickle.printed(query_view));
    exception when others then
        raise exception 'the columns of the query cannot be those of a table: %', sqlerrm using
            errcode = sqlstate, hint = 'Give each column a name and a type that a table can have.';
    end;
    relation_id := printed::pg_catalog.regclass;
    execute pg_catalog.format('create trigger pgtrickle_guard before insert or update or delete or truncate '
        'on %s for each statement execute function pgtrickle.refuse_direct_write()', printed);
    execute pg_catalog.format('grant select, insert, update, delete, trigger on %s to %I',
        printed, pg_catalog.pg_get_userbyid(pgtrickle.sidecar_role()));
    perform pgtrickle.create_row_index(relation_id);
    perform pgtrickle.prove_ownership(relation_id);
    return relation_id;
end
$$;

ALTER FUNCTION pgtrickle.create_storage(schema_name text, table_name text, query_view oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_stream_table(name text, query text, schedule text DEFAULT 'calculated'::text, refresh_mode text DEFAULT 'AUTO'::text, initialize boolean DEFAULT true, diamond_consistency text DEFAULT NULL::text, diamond_schedule_policy text DEFAULT NULL::text, cdc_mode text DEFAULT NULL::text, append_only boolean DEFAULT false, pooler_compatibility_mode boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    asked jsonb := pgtrickle.options(schedule, refresh_mode, initialize, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode);
    parts text[] := pgtrickle.new_name(name);
    query_view oid;
    relation_id oid;
    id bigint;
begin
    perform pgtrickle.check_room(parts[1], parts[2]);
    query_view := pgtrickle.view_of(query);
    relation_id := pgtrickle.create_storage(parts[1], parts[2], query_view);
    id := pgtrickle.register(query_view, relation_id, asked, pgtrickle.session_settings(),
        pgtrickle.match_columns(relation_id));
    perform pgtrickle.enable_always_for(id);
    perform pgtrickle.drop_view(query_view);
end
$$;

ALTER FUNCTION pgtrickle.create_stream_table(name text, query text, schedule text, refresh_mode text, initialize boolean, diamond_consistency text, diamond_schedule_policy text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean) OWNER TO trickle;

CREATE PROCEDURE pgtrickle.create_stream_table_and_wait(IN name text, IN query text, IN schedule text DEFAULT 'calculated'::text, IN refresh_mode text DEFAULT 'AUTO'::text, IN timeout interval DEFAULT '00:10:00'::interval)
    LANGUAGE plpgsql
    AS $$
begin
    perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode);
    call pgtrickle.refresh_and_wait(name, timeout);
end
$$;

ALTER PROCEDURE pgtrickle.create_stream_table_and_wait(IN name text, IN query text, IN schedule text, IN refresh_mode text, IN timeout interval) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_stream_table_if_not_exists(name text, query text, schedule text DEFAULT 'calculated'::text, refresh_mode text DEFAULT 'AUTO'::text, initialize boolean DEFAULT true, diamond_consistency text DEFAULT NULL::text, diamond_schedule_policy text DEFAULT NULL::text, cdc_mode text DEFAULT NULL::text, append_only boolean DEFAULT false, pooler_compatibility_mode boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if pgtrickle.find_stream_table(name) is not null then
        raise notice 'stream table % exists already and stays as it is', name;
        return;
    end if;
    perform pgtrickle.create_stream_table(name, query, schedule, refresh_mode, initialize,
        diamond_consistency, diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode);
end
$$;

ALTER FUNCTION pgtrickle.create_stream_table_if_not_exists(name text, query text, schedule text, refresh_mode text, initialize boolean, diamond_consistency text, diamond_schedule_policy text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean) OWNER TO trickle;

CREATE FUNCTION pgtrickle.create_trigger(source oid, trigger_level text, relation_id oid, trigger_name name, event text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    execute format('create or replace trigger %I after %s on %s %s for each %s '
        'execute function pgtrickle_changes.capture_%s()',
        trigger_name, event, pgtrickle.printed(relation_id),
        case when trigger_level = 'row' or event = 'truncate' then ''
            when event = 'insert' then 'referencing new table as new_rows'
            when event = 'delete' then 'referencing old table as old_rows'
            else 'referencing old table as old_rows new table as new_rows' end,
        case when event = 'truncate' then 'statement' else trigger_level end,
        source);
end
$$;

ALTER FUNCTION pgtrickle.create_trigger(source oid, trigger_level text, relation_id oid, trigger_name name, event text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.cron_field(schedule text, name text, part text, low integer, high integer, words text[]) RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    atom text;
    pieces text[];
    wrong text;
    first_value integer;
    last_value integer;
    found integer[] := '{}';
begin
    foreach atom in array string_to_array(part, ',') loop
        wrong := null;
        pieces := regexp_match(atom,
            '^(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$');
        first_value := coalesce(array_position(words, pieces[1]) - 1 + low,
            case when pieces[1] ~ '^[0-9]+$' then pieces[1]::integer end);
        last_value := coalesce(array_position(words, pieces[2]) - 1 + low,
            case when pieces[2] ~ '^[0-9]+$' then pieces[2]::integer end);
        -- a week may also end with its Sunday: fri-sun
        if words[1] = 'sun' and last_value = 0 and first_value > 0 then
            last_value := 7;
        end if;
        if pieces is null or (pieces[1] is not null and first_value is null)
            or (pieces[2] is not null and last_value is null)
        then
            wrong := 'cannot be read';
        elsif not coalesce(first_value, low) between low and high
            or not coalesce(last_value, high) between low and high
        then
            wrong := format('is not between %s and %s', low, high);
        elsif last_value < first_value then
            wrong := 'ends before it begins';
        elsif pieces[3]::integer = 0 then
            wrong := 'has a step of zero';
        end if;
        if wrong is not null then
            raise exception '%', format('%L is not a schedule: the %s %L %s', schedule, name, atom, wrong) using
                errcode = 'invalid_parameter_value', hint = pgtrickle.cron_hint();
        end if;
        if last_value is null then
            last_value := case when first_value is not null and pieces[3] is null then first_value else high end;
        end if;
        found := found || array(select generate_series(
            coalesce(first_value, low), last_value, coalesce(pieces[3]::integer, 1)));
    end loop;
    return found;
end
$_$;

ALTER FUNCTION pgtrickle.cron_field(schedule text, name text, part text, low integer, high integer, words text[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.cron_hint() RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    select 'A cron schedule is: minute hour day month weekday, in UTC, such as */5 8-17 * * mon-fri; '
        'of six fields the first is the second; or @hourly, @daily, @weekly, @monthly, @yearly.'
$$;

ALTER FUNCTION pgtrickle.cron_hint() OWNER TO trickle;

CREATE FUNCTION pgtrickle.declared_columns(relation_id oid) RETURNS TABLE(number smallint, column_name name, declared text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select a.attnum, a.attname, format_type(m.id, m.modifier) || coalesce((
            select format(' collate %I.%I', n.nspname, l.collname)
            from pg_collation l join pg_namespace n on n.oid = l.collnamespace
            where l.oid = a.attcollation), '')
    from pg_attribute a
    cross join lateral (
        with recursive below(id, modifier, depth) as (
            select a.atttypid, a.atttypmod, 0
            union all
            select t.typbasetype, t.typtypmod, b.depth + 1
            from below b join pg_type t on t.oid = b.id and t.typtype = 'd'
        )
        select b.id, b.modifier from below b order by b.depth desc limit 1
    ) m
    where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped
$$;

ALTER FUNCTION pgtrickle.declared_columns(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.drain(timeout_s integer DEFAULT 60) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    is_done boolean := true;
    limit_before text := current_setting('lock_timeout');
begin
    perform pgtrickle.check_may_drain();
    if timeout_s is null or timeout_s not between 0 and 86400 then
        raise exception '%', format('timeout_s %s is not between 0 and 86400', coalesce(timeout_s::text, 'null'))
        using errcode = 'invalid_parameter_value', hint = 'It is in seconds.';
    end if;
    begin
        -- zero would mean no limit
        perform set_config('lock_timeout', greatest(timeout_s * 1000, 1)::text, true);
        perform pg_advisory_xact_lock(pgtrickle.drain_lock(), 0);
    exception when lock_not_available then
        is_done := false;
    end;
    perform set_config('lock_timeout', limit_before, true);
    insert into pgtrickle.pgt_drain (drained_by) values (pgtrickle.asking_role()) on conflict do nothing;
    return is_done;
end
$$;

ALTER FUNCTION pgtrickle.drain(timeout_s integer) OWNER TO trickle;

CREATE FUNCTION pgtrickle.drain_lock() RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ select 1885828211 $$;

ALTER FUNCTION pgtrickle.drain_lock() OWNER TO trickle;

CREATE FUNCTION pgtrickle.drain_locks() RETURNS TABLE(mode text, granted boolean)
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select l.mode, l.granted from pg_locks l
    where l.locktype = 'advisory' and l.classid = pgtrickle.drain_lock()::oid and l.objid = 0 and l.objsubid = 2
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
$$;

ALTER FUNCTION pgtrickle.drain_locks() OWNER TO trickle;

CREATE FUNCTION pgtrickle.drop_by_id(id bigint, cascade boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    relation_id oid := (select s.pgt_relid from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    dependants bigint[] := array(
        select d.pgt_id from pgtrickle.pgt_dependencies d
        where d.source_relid = relation_id and d.source_type = 'stream_table' order by 1);
    dependant bigint;
begin
    if dependants <> '{}' and not cascade then
        raise exception '%', format('other stream tables read %s: %s', pgtrickle.printed(relation_id), (
                select string_agg(pgtrickle.printed(s.pgt_relid), ', ' order by s.pgt_id)
                from pgtrickle.pgt_stream_tables s where s.pgt_id = any (dependants))) using
            errcode = 'dependent_objects_still_exist',
            hint = 'Drop them first, or use cascade => true.';
    end if;
    foreach dependant in array dependants loop
        if exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = dependant) then
            perform pgtrickle.drop_by_id(dependant, cascade);
        end if;
    end loop;
    if exists (select from pg_class where oid = relation_id) then
        execute format('drop table %s %s', pgtrickle.printed(relation_id), case when cascade then 'cascade' end);
    end if;
    perform pgtrickle.forget(id);
end
$$;

ALTER FUNCTION pgtrickle.drop_by_id(id bigint, cascade boolean) OWNER TO trickle;

CREATE FUNCTION pgtrickle.drop_state(id bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    kept text;
begin
    for kept in
        select format('table %s', pgtrickle.printed(c.oid)) from pg_class c
        where c.relnamespace = 'pgtrickle_state'::regnamespace and c.relkind = 'r'
            and c.relname ~ format('^[a-z]+_%s$', id)
        union all
        select format('function %s', p.oid::regprocedure) from pg_proc p
        where p.pronamespace = 'pgtrickle_state'::regnamespace and p.proname ~ format('^[a-z]+_%s$', id)
        -- tables first: an index may use a function
        order by 1 desc
    loop
        execute 'drop ' || kept;
    end loop;
end
$_$;

ALTER FUNCTION pgtrickle.drop_state(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.drop_stream_table(name text, cascade boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pgtrickle.drop_by_id(pgtrickle.stream_table(name), cascade);
end
$$;

ALTER FUNCTION pgtrickle.drop_stream_table(name text, cascade boolean) OWNER TO trickle;

CREATE FUNCTION pgtrickle.drop_view(query_view oid) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    execute pg_catalog.format('drop view %s', pgtrickle.printed(query_view));
end
$$;

ALTER FUNCTION pgtrickle.drop_view(query_view oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.emit_alert(event text, facts jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    about record;
    told jsonb := jsonb_build_object('event', event, 'at', clock_timestamp()) || facts;
begin
    if facts ? 'pgt_id' then
        select coalesce(pgtrickle.printed(s.pgt_relid), format('%I.%I', s.pgt_schema, s.pgt_name)) as name,
            s.pooler_compatibility_mode as is_silent
        into about
        from pgtrickle.pgt_stream_tables s where s.pgt_id = (facts ->> 'pgt_id')::bigint;
        if about.is_silent then
            return;
        end if;
        told := told || jsonb_build_object('stream_table', about.name);
    end if;
    -- PostgreSQL takes 8000 bytes
    if octet_length(told::text) > 7900 then
        told := jsonb_build_object('event', event, 'at', told -> 'at', 'pgt_id', told -> 'pgt_id',
            'stream_table', told -> 'stream_table', 'is_shortened', true);
    end if;
    perform pg_notify(channel, told::text) from unnest('{pg_trickle_alert,pgtrickle_alert}'::text[]) channel;
end
$$;

ALTER FUNCTION pgtrickle.emit_alert(event text, facts jsonb) OWNER TO trickle;

CREATE FUNCTION pgtrickle.empty_retired(source oid, active smallint) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    buffer text := format('pgtrickle_changes.changes_%s_%s', source, 1 - active);
    is_needed boolean;
    reader record;
begin
    if pg_relation_size(buffer::regclass) = 0 then
        return true;
    end if;
    execute format('lock table %s in access exclusive mode nowait', buffer);
    for reader in
        select s.pgt_id, s.frontier, s.upstream_frontier
        from pgtrickle.pgt_stream_tables s
        join pgtrickle.pgt_dependencies d on d.pgt_id = s.pgt_id
        where d.source_relid = source and d.source_type not in ('view', 'function')
    loop
        if reader.frontier is null and reader.upstream_frontier is null then
            perform from pgtrickle.pgt_stream_tables s
            where s.pgt_id = reader.pgt_id and s.frontier is null and s.upstream_frontier is null
            for share skip locked;
            if not found then
                return false;
            end if;
            continue;
        end if;
        execute format('select exists (select from %s b, unnest($1) f(seen) '
            'where f.seen is not null and b.xid >= pg_snapshot_xmin(f.seen) '
            'and not pg_visible_in_snapshot(b.xid, f.seen))', buffer)
        into is_needed
        using array[reader.frontier, reader.upstream_frontier];
        if is_needed then
            return false;
        end if;
    end loop;
    execute format('truncate %s', buffer);
    return true;
exception when lock_not_available then
    return false;
end
$_$;

ALTER FUNCTION pgtrickle.empty_retired(source oid, active smallint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.empty_touched(side integer, seen pg_snapshot) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    name text := format('pgtrickle_changes.touched_%s', side);
    is_unseen boolean;
begin
    if pg_relation_size(name::regclass) = 0 then
        return true;
    end if;
    execute format('lock table %s in access exclusive mode nowait', name);
    execute format('select exists (select from %s t where t.xid >= pg_snapshot_xmin($1) '
        'and not pg_visible_in_snapshot(t.xid, $1))', name) into is_unseen using seen;
    if is_unseen then
        return false;
    end if;
    execute format('truncate %s', name);
    return true;
exception when lock_not_available then
    return false;
end
$_$;

ALTER FUNCTION pgtrickle.empty_touched(side integer, seen pg_snapshot) OWNER TO trickle;

CREATE FUNCTION pgtrickle.enable_always(source oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    wanted record;
begin
    for wanted in
        select w.* from pgtrickle.pgt_sources s
        cross join lateral pgtrickle.wanted_triggers(source, s.trigger_level) w
        join pg_class c on c.oid = w.relation_id
        where s.source_relid = source and w.enabled = 'O' and pg_has_role(c.relowner, 'USAGE')
    loop
        execute format('alter table %s enable always trigger %I',
            pgtrickle.printed(wanted.relation_id), wanted.trigger_name);
    end loop;
end
$$;

ALTER FUNCTION pgtrickle.enable_always(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.enable_always_for(id bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    source oid;
begin
    for source in
        select d.source_relid from pgtrickle.pgt_dependencies d
        where d.pgt_id = id and d.source_type in ('table', 'stream_table') order by 1
    loop
        perform pgtrickle.enable_always(source);
        perform pgtrickle.note_always(source);
    end loop;
end
$$;

ALTER FUNCTION pgtrickle.enable_always_for(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.explain_refresh_mode(name text) RETURNS TABLE(configured_mode text, effective_mode text, downgrade_reason text)
    LANGUAGE sql STABLE
    AS $$
    select i.refresh_mode, i.effective_refresh_mode, i.downgrade_reason
    from pgtrickle.stream_tables_info i where i.pgt_id = pgtrickle.stream_table(name)
$$;

ALTER FUNCTION pgtrickle.explain_refresh_mode(name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.failure_since(id bigint, moment timestamp with time zone) RETURNS text
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select coalesce(h.error_message, 'unknown error') from pgtrickle.visible_history h
    where h.pgt_id = id and h.status = 'FAILED' and h.start_time >= moment
    order by h.refresh_id desc limit 1
$$;

ALTER FUNCTION pgtrickle.failure_since(id bigint, moment timestamp with time zone) OWNER TO trickle;

CREATE FUNCTION pgtrickle.find_stream_table(given text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
declare
    parts text[] := pgtrickle.name_parts(given);
    printed_name text;
    found_id bigint;
begin
    select pg_catalog.string_agg(pg_catalog.quote_ident(part), '.' order by number) into printed_name
    from pg_catalog.unnest(parts) with ordinality as p(part, number);
    select s.pgt_id into found_id
    from pgtrickle.pgt_stream_tables s
    where s.pgt_relid = pg_catalog.to_regclass(printed_name)::pg_catalog.oid;
    if found_id is null then
        select s.pgt_id into found_id
        from pgtrickle.pgt_stream_tables s
        where s.pgt_name = parts[pg_catalog.cardinality(parts)]
            and s.pgt_schema = any (case when pg_catalog.cardinality(parts) = 2
                then array[parts[1]::name] else pg_catalog.current_schemas(false) end)
            and not exists (select from pg_catalog.pg_class c where c.oid = s.pgt_relid)
        order by pg_catalog.array_position(pg_catalog.current_schemas(false), s.pgt_schema)
        limit 1;
    end if;
    return found_id;
end
$$;

ALTER FUNCTION pgtrickle.find_stream_table(given text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.fingerprint(source_type text, source_id oid, numbers smallint[]) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case source_type
        when 'view' then pgtrickle.view_fingerprint(source_id)
        when 'function' then pgtrickle.function_fingerprint(source_id)
        else pgtrickle.table_fingerprint(source_id, numbers) end
$$;

ALTER FUNCTION pgtrickle.fingerprint(source_type text, source_id oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.fit_copy(source oid, numbers smallint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET client_min_messages TO 'warning'
    AS $$
declare
    alterations text := pgtrickle.misfit(source);
begin
    execute format('create table if not exists %s ()', pgtrickle.copy_of(source));
    if alterations is not null then
        execute format('alter table %s %s', pgtrickle.copy_of(source), alterations);
    end if;
    perform pgtrickle.create_buffers(source, numbers);
end
$$;

ALTER FUNCTION pgtrickle.fit_copy(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.forget(id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    sources oid[] := array(
        select d.source_relid from pgtrickle.pgt_dependencies d
        where d.pgt_id = id and d.source_type not in ('view', 'function') order by 1);
begin
    if exists (select from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = id)
    then
        raise exception 'the table of this stream table still exists' using
            errcode = 'object_not_in_prerequisite_state', hint = 'Use pgtrickle.drop_stream_table.';
    end if;
    perform pgtrickle.drop_state(id);
    delete from pgtrickle.pgt_stream_tables s where s.pgt_id = id;
    -- a table that is busy now is released by the sidecar later
    perform pgtrickle.release_source(source) from unnest(sources) source;
end
$$;

ALTER FUNCTION pgtrickle.forget(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.function_fingerprint(function_id oid) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select jsonb_build_object(
        'name', format('%I.%I', n.nspname, p.proname),
        'definition', md5(concat_ws('|', p.prosrc, p.probin, p.prosqlbody::text, p.proisstrict,
            p.proconfig::text, p.prolang)),
        'volatility', p.provolatile,
        'owner', p.proowner::bigint)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.oid = function_id
$$;

ALTER FUNCTION pgtrickle.function_fingerprint(function_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.functions_of(query_view oid, reader oid) RETURNS SETOF oid
    LANGUAGE sql STABLE ROWS 20
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with recursive rules as (select * from pgtrickle.rules_of(query_view, reader)),
    called(id) as (
        select found[1]::oid from rules r,
            regexp_matches(r.action, ':(?:funcid|opfuncid|aggfnoid|winfnoid|hashfuncid|negfuncid) (\d+)', 'g') found
        union
        select o.oprcode::oid from rules r,
            regexp_matches(r.action, ':(?:opno|eqop|sortop) (\d+)', 'g') found
            join pg_operator o on o.oid = found[1]::oid
        union
        select o.oprcode::oid from rules r,
            regexp_matches(r.action, ':opnos \(o ([ \d]+)\)', 'g') found,
            regexp_split_to_table(btrim(found[1]), ' +') listed
            join pg_operator o on o.oid = listed::oid
    ),
    typed(id) as (
        select found[1]::oid from rules r,
            regexp_matches(r.action, ':(?:resulttype|vartype|consttype|funcresulttype) (\d+)', 'g') found
        union
        select next.id from typed t
        join pg_type y on y.oid = t.id
        cross join lateral (
            select y.typbasetype where y.typtype = 'd'
            union all select y.typelem where y.typelem <> 0
            union all select a.atttypid from pg_attribute a
                where a.attrelid = y.typrelid and a.attnum > 0 and not a.attisdropped
            union all select g.rngsubtype from pg_range g where y.oid in (g.rngtypid, g.rngmultitypid)
        ) as next(id)
    )
    select id from called where id <> 0
    union
    select part from called join pg_aggregate g on g.aggfnoid = called.id
        cross join lateral unnest(array[g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn,
            g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::oid[]) part
    where part <> 0
    union
    select d.refobjid from typed t
    join pg_constraint k on k.contypid = t.id
    join pg_depend d on d.classid = 'pg_constraint'::regclass and d.objid = k.oid
        and d.refclassid = 'pg_proc'::regclass
$$;

ALTER FUNCTION pgtrickle.functions_of(query_view oid, reader oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.gate_before(id bigint) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select format('source %s is gated since %s by %I', pgtrickle.printed(g.source_relid),
        to_char(g.gated_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), g.gated_by)
    from pgtrickle.pgt_gates g
    where exists (select from pgtrickle.gated_tables() t where t.pgt_id = id and t.source_relid = g.source_relid)
    order by g.gated_at limit 1
$$;

ALTER FUNCTION pgtrickle.gate_before(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.gate_source(source text) RETURNS void
    LANGUAGE sql
    AS $$ select pgtrickle.close_gate(pgtrickle.source_named(source)) $$;

ALTER FUNCTION pgtrickle.gate_source(source text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.gated_sources() RETURNS TABLE(source_table text, source_oid oid, gated_at timestamp with time zone, gated_by name, stream_tables text[])
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select pgtrickle.printed(g.source_relid), g.source_relid, g.gated_at, g.gated_by,
        array(select pgtrickle.printed(s.pgt_relid) from pgtrickle.gated_tables() t
            join pgtrickle.pgt_stream_tables s on s.pgt_id = t.pgt_id
            where t.source_relid = g.source_relid order by 1)
    from pgtrickle.pgt_gates g join pg_class c on c.oid = g.source_relid
    order by g.gated_at
$$;

ALTER FUNCTION pgtrickle.gated_sources() OWNER TO trickle;

CREATE FUNCTION pgtrickle.gated_tables() RETURNS TABLE(pgt_id bigint, source_relid oid)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with recursive waiting(pgt_id, source_relid) as (
        select d.pgt_id, g.source_relid from pgtrickle.pgt_gates g
        join pgtrickle.pgt_dependencies d on d.source_relid = g.source_relid and d.source_type <> 'function'
        union
        select d.pgt_id, w.source_relid from waiting w
        join pgtrickle.pgt_stream_tables s on s.pgt_id = w.pgt_id
        join pgtrickle.pgt_dependencies d on d.source_relid = s.pgt_relid and d.source_type <> 'function'
    )
    select w.pgt_id, w.source_relid from waiting w
$$;

ALTER FUNCTION pgtrickle.gated_tables() OWNER TO trickle;

CREATE FUNCTION pgtrickle.get_refresh_history(name text, max_rows integer DEFAULT 20) RETURNS TABLE(refresh_id bigint, data_timestamp timestamp with time zone, start_time timestamp with time zone, end_time timestamp with time zone, action text, status text, rows_inserted bigint, rows_deleted bigint, duration_ms double precision, error_message text)
    LANGUAGE sql STABLE
    AS $$
    select h.refresh_id, h.data_timestamp, h.start_time, h.end_time, h.action, h.status, h.rows_inserted,
        h.rows_deleted, h.duration_ms, h.error_message
    from pgtrickle.visible_history h
    where h.pgt_id = pgtrickle.stream_table(name)
    order by h.refresh_id desc limit greatest(max_rows, 0)
$$;

ALTER FUNCTION pgtrickle.get_refresh_history(name text, max_rows integer) OWNER TO trickle;

CREATE FUNCTION pgtrickle.get_staleness(name text) RETURNS double precision
    LANGUAGE sql STABLE
    AS $$
    select extract(epoch from i.staleness)::double precision
    from pgtrickle.stream_tables_info i where i.pgt_id = pgtrickle.stream_table(name)
$$;

ALTER FUNCTION pgtrickle.get_staleness(name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.index_copy(source oid, numbers smallint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    wanted record;
begin
    for wanted in
        select s.column_names from pgtrickle.plain_indexes(source) s
        where s.column_names <@ array(select a.attname from pg_attribute a
            where a.attrelid = source and a.attnum = any (numbers))
        except
        select c.column_names from pgtrickle.plain_indexes(pgtrickle.copy_of(source)::regclass) c
    loop
        execute format('create index on %s (%s)', pgtrickle.copy_of(source),
            (select string_agg(format('%I', name), ', ' order by position)
                from unnest(wanted.column_names) with ordinality as part(name, position)));
    end loop;
end
$$;

ALTER FUNCTION pgtrickle.index_copy(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.intact_columns(source oid, numbers smallint[]) RETURNS smallint[]
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select coalesce(array_agg(a.attnum order by a.attnum), '{}')
    from pg_attribute a
    join pg_attribute b on b.attrelid = to_regclass(format('pgtrickle_changes.changes_%s_0', source))
        and b.attname = 'c' || a.attnum and b.atttypid = a.atttypid
    where a.attrelid = source and a.attnum = any (numbers) and not a.attisdropped
$$;

ALTER FUNCTION pgtrickle.intact_columns(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_altered(source oid, names name[], types oid[]) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    found_types oid[];
begin
    execute format('select array[%s]::oid[] from (select null::%s) as t(r)', (
        select string_agg(format('pg_typeof((r).%I)', u.name), ', ' order by u.number)
        from unnest(names) with ordinality as u(name, number)), source::regclass) into found_types;
    return found_types is distinct from types;
exception when others then
    -- nothing of ours may fail: what was altered beyond recognition is altered
    return true;
end
$$;

ALTER FUNCTION pgtrickle.is_altered(source oid, names name[], types oid[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_drained() RETURNS boolean
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select exists (select from pgtrickle.pgt_drain)
        and not exists (select from pgtrickle.drain_locks() d where d.mode = 'ShareLock' and d.granted)
$$;

ALTER FUNCTION pgtrickle.is_drained() OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_draining() RETURNS boolean
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select exists (select from pgtrickle.pgt_drain)
        or exists (select from pgtrickle.drain_locks() d where d.mode = 'ExclusiveLock')
$$;

ALTER FUNCTION pgtrickle.is_draining() OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_hashable(type_id oid) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    t pg_type;
begin
    select * into strict t from pg_type where oid = type_id;
    if t.typtype = 'd' then
        return pgtrickle.is_hashable(t.typbasetype);
    elsif t.typtype = 'e' then
        return true;
    elsif t.typtype in ('r', 'm') then
        return (select pgtrickle.is_hashable(rngsubtype) from pg_range where type_id in (rngtypid, rngmultitypid));
    elsif t.typtype = 'c' then
        return (select coalesce(bool_and(pgtrickle.is_hashable(atttypid)), true)
            from pg_attribute where attrelid = t.typrelid and attnum > 0 and not attisdropped);
    elsif t.typcategory = 'A' and t.typelem <> 0 then
        return pgtrickle.is_hashable(t.typelem);
    end if;
    return exists (
        select from pg_opclass o join pg_am m on m.oid = o.opcmethod and m.amname = 'hash'
        join pg_amproc f on f.amprocfamily = o.opcfamily and f.amproclefttype = o.opcintype
            and f.amprocrighttype = o.opcintype and f.amprocnum = 2
        where o.opcdefault and (o.opcintype = type_id or exists (
            select from pg_cast k where k.castsource = type_id and k.casttarget = o.opcintype
                and k.castmethod = 'b' and k.castcontext = 'i')));
end
$$;

ALTER FUNCTION pgtrickle.is_hashable(type_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_refreshed_since(id bigint, moment pg_snapshot) RETURNS boolean
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select s.is_populated and pg_snapshot_xmax(f.seen) >= pg_snapshot_xmax(moment)
        and not exists (select from pg_snapshot_xip(f.seen) running where pg_visible_in_snapshot(running, moment))
    from pgtrickle.pgt_stream_tables s
    cross join lateral (select coalesce(s.frontier, s.upstream_frontier)) f(seen)
    where s.pgt_id = id and f.seen is not null
    union all
    select false
    limit 1
$$;

ALTER FUNCTION pgtrickle.is_refreshed_since(id bigint, moment pg_snapshot) OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_source(relation_id oid) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select exists (select from pgtrickle.pgt_dependencies d
        where d.source_relid = relation_id and d.source_type not in ('view', 'function'))
$$;

ALTER FUNCTION pgtrickle.is_source(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.is_trusted(owner_id oid) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select r.rolsuper or pg_has_role(r.oid, pgtrickle.sidecar_role(), 'MEMBER')
    from pg_roles r where r.oid = owner_id
$$;

ALTER FUNCTION pgtrickle.is_trusted(owner_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.list_sources(name text) RETURNS TABLE(source_table text, source_oid oid, source_type text, cdc_mode text, columns_used text[])
    LANGUAGE sql STABLE
    AS $$
    select coalesce(pgtrickle.printed(d.source_relid),
            case d.source_type when 'function' then d.source_name
                else pg_catalog.format('%I.%I', d.source_schema, d.source_name) end),
        d.source_relid, d.source_type, d.cdc_mode, d.columns_used
    from pgtrickle.pgt_dependencies d
    where d.pgt_id = pgtrickle.stream_table(name)
    order by d.source_type, 1
$$;

ALTER FUNCTION pgtrickle.list_sources(name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.manual_refresh(stream_table_name text) RETURNS void
    LANGUAGE sql
    AS $$ select pgtrickle.refresh_stream_table(stream_table_name) $$;

ALTER FUNCTION pgtrickle.manual_refresh(stream_table_name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.match_columns(relation_id oid) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select array_agg(case when not pgtrickle.is_hashable(atttypid) then format('(%I)::text', attname)
        when not coalesce(collisdeterministic, true) then format('(%I collate pg_catalog."C")', attname)
        else format('%I', attname) end order by attnum)
    from pg_attribute left join pg_collation c on c.oid = attcollation
    where attrelid = relation_id and attnum > 0 and not attisdropped
$$;

ALTER FUNCTION pgtrickle.match_columns(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.may_see_errors(owner_id oid) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    select pg_catalog.pg_has_role(owner_id, 'USAGE') or pg_catalog.pg_has_role(pgtrickle.sidecar_role(), 'USAGE')
$$;

ALTER FUNCTION pgtrickle.may_see_errors(owner_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.may_select(role_id oid, relation_id oid, columns smallint[]) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select has_table_privilege(role_id, relation_id, 'SELECT')
        or (cardinality(columns) = 0 and has_any_column_privilege(role_id, relation_id, 'SELECT'))
        or (cardinality(columns) > 0 and not exists (
            select from unnest(columns) number
            where not has_column_privilege(role_id, relation_id, number, 'SELECT')))
$$;

ALTER FUNCTION pgtrickle.may_select(role_id oid, relation_id oid, columns smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.may_start() RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not pg_try_advisory_xact_lock_shared(pgtrickle.drain_lock(), 0) then
        return false;
    end if;
    return not exists (select from pgtrickle.pgt_drain);
end
$$;

ALTER FUNCTION pgtrickle.may_start() OWNER TO trickle;

CREATE FUNCTION pgtrickle.misfit(source oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with present as (select * from pgtrickle.declared_columns(to_regclass(pgtrickle.copy_of(source)))),
    wanted as (select * from pgtrickle.declared_columns(source))
    select string_agg(part, ', ' order by number) from (
        select 0 as number, format('drop column %I', column_name) as part from present
        where (column_name, declared) not in (select column_name, declared from wanted)
        union all
        select number, format('add column %I %s', column_name, declared) from wanted
        where (column_name, declared) not in (select column_name, declared from present)
    ) parts
$$;

ALTER FUNCTION pgtrickle.misfit(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.name_parts(given text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    parts text[];
begin
    begin
        parts := parse_ident(given);
    exception when invalid_parameter_value then
        parts := null;
    end;
    if parts is null or cardinality(parts) not in (1, 2)
        or exists (select from unnest(parts) part where part = '' or octet_length(part) > 63)
    then
        raise exception '%', format('%L is not the name of a table', given) using
            errcode = 'invalid_name',
            hint = 'Write name or schema.name, in double quotes where a part has capitals or special '
                'characters; a part has at most 63 bytes.';
    end if;
    return parts;
end
$$;

ALTER FUNCTION pgtrickle.name_parts(given text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.new_name(given text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
declare
    parts text[] := pgtrickle.name_parts(given);
begin
    if pg_catalog.cardinality(parts) = 2 then
        return parts;
    end if;
    if pg_catalog.current_schema() is null then
        raise exception '%', pg_catalog.format('no schema to create %I in', parts[1]) using
            errcode = 'invalid_schema_name',
            hint = 'Write schema.name, or set search_path to a schema that exists.';
    end if;
    return pg_catalog.array_prepend(pg_catalog.current_schema()::text, parts);
end
$$;

ALTER FUNCTION pgtrickle.new_name(given text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.note_always(source oid) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    update pgtrickle.pgt_sources s set is_always = fires.always
    from (
        select bool_and(w.enabled is not distinct from 'A') as always
        from pgtrickle.pgt_sources s
        cross join lateral pgtrickle.wanted_triggers(source, s.trigger_level) w
        where s.source_relid = source
    ) fires
    where s.source_relid = source and s.is_always is distinct from fires.always
$$;

ALTER FUNCTION pgtrickle.note_always(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.note_definition() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.raise_generation(case tg_op when 'DELETE' then old.pgt_id else new.pgt_id end);
    return null;
end
$$;

ALTER FUNCTION pgtrickle.note_definition() OWNER TO trickle;

CREATE FUNCTION pgtrickle.one_of(option text, value text, allowed text[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    found text;
begin
    select a into found from unnest(allowed) a where lower(a) = lower(btrim(value));
    if value is not null and found is null then
        raise exception '%', format('%L is not a value of %s', value, option) using
            errcode = 'invalid_parameter_value',
            hint = 'It is one of ' || array_to_string(allowed, ', ') || '.';
    end if;
    return found;
end
$$;

ALTER FUNCTION pgtrickle.one_of(option text, value text, allowed text[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.open_gate(relation_id oid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.check_may_gate(relation_id);
    delete from pgtrickle.pgt_gates g where g.source_relid = relation_id;
    if found then
        perform pgtrickle.raise_generation(null);
    end if;
end
$$;

ALTER FUNCTION pgtrickle.open_gate(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.options(schedule text, refresh_mode text, initialize boolean, diamond_consistency text, diamond_schedule_policy text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean, tier text DEFAULT NULL::text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.schedule_seconds(schedule);
    if lower(btrim(cdc_mode)) = 'wal' then
        raise exception 'cdc_mode ''wal'' is not supported yet' using
            errcode = 'feature_not_supported',
            hint = 'Use ''trigger'', or ''auto'' to let pgtrickle choose.';
    end if;
    return jsonb_build_object(
        'schedule', coalesce(lower(btrim(schedule, E' \t\n\r')), 'manual'),
        'refresh_mode', pgtrickle.one_of('refresh_mode', refresh_mode, '{AUTO,DIFFERENTIAL,FULL}'),
        'initialize', initialize,
        'diamond_consistency',
            pgtrickle.one_of('diamond_consistency', diamond_consistency, '{none,atomic}'),
        'diamond_schedule_policy',
            pgtrickle.one_of('diamond_schedule_policy', diamond_schedule_policy, '{fastest,slowest}'),
        'cdc_mode', pgtrickle.one_of('cdc_mode', cdc_mode, '{auto,trigger}'),
        'append_only', append_only,
        'pooler_compatibility_mode', pooler_compatibility_mode,
        'refresh_tier', pgtrickle.one_of('tier', tier, '{hot,warm,cold,frozen}')
    );
end
$$;

ALTER FUNCTION pgtrickle.options(schedule text, refresh_mode text, initialize boolean, diamond_consistency text, diamond_schedule_policy text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean, tier text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.pgt_status() RETURNS TABLE(name text, status text, refresh_mode text, is_populated boolean, consecutive_errors integer, schedule text, data_timestamp timestamp with time zone, staleness interval)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select format('%I.%I', i.pgt_schema, i.pgt_name), i.status, i.refresh_mode, i.is_populated,
        i.consecutive_errors, i.schedule, i.data_timestamp, i.staleness
    from pgtrickle.stream_tables_info i order by 1
$$;

ALTER FUNCTION pgtrickle.pgt_status() OWNER TO trickle;

CREATE FUNCTION pgtrickle.plain_indexes(relation_id oid) RETURNS TABLE(column_names name[])
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select distinct k.names
    from pg_index i
    join pg_class x on x.oid = i.indexrelid
    join pg_am m on m.oid = x.relam and m.amname = 'btree'
    cross join lateral (
        select array_agg(a.attname order by part.position) as names, bool_and(o.opcdefault) as is_plain
        from unnest(i.indkey::smallint[], i.indclass::oid[]) with ordinality as part(number, class_id, position)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
        join pg_opclass o on o.oid = part.class_id
        where part.position <= i.indnkeyatts) k
    where i.indrelid = relation_id and i.indisvalid and i.indpred is null and 0 <> all (i.indkey::smallint[])
        and k.is_plain
$$;

ALTER FUNCTION pgtrickle.plain_indexes(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.planned_condition(source oid, numbers smallint[], rows_of name) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case when count(*) = 0 then 'false' else format('pgtrickle.is_altered(%s::pg_catalog.oid, '
        '%L::pg_catalog.name[], %L::pg_catalog.oid[]) and (select pg_catalog.count(*) from %I) is not null',
        source, array_agg(column_name), array_agg(type_id), rows_of) end
    from pgtrickle.relied_on(source, numbers)
$$;

ALTER FUNCTION pgtrickle.planned_condition(source oid, numbers smallint[], rows_of name) OWNER TO trickle;

CREATE FUNCTION pgtrickle.printed(relation oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select format('%I.%I', n.nspname, c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation
$$;

ALTER FUNCTION pgtrickle.printed(relation oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.prove_ownership(relation_id oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    execute format('comment on trigger pgtrickle_guard on %s is %L',
        pgtrickle.printed(relation_id), 'last defined in transaction ' || pg_current_xact_id()::text);
exception
    when insufficient_privilege then
        raise exception '%', format('only its owner may do that to stream table %s',
                pgtrickle.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = (select format('It belongs to %I.', pg_get_userbyid(relowner))
                from pg_class where oid = relation_id);
    when undefined_object then
        raise exception '%', format('stream table %s has lost its trigger pgtrickle_guard',
                pgtrickle.printed(relation_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = 'Drop the stream table and create it again.';
end
$$;

ALTER FUNCTION pgtrickle.prove_ownership(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.raise_generation(id bigint) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ insert into pgtrickle.pgt_generation (pgt_id) values (id) $$;

ALTER FUNCTION pgtrickle.raise_generation(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.raise_unanswered(name text, timeout interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    raise exception '%', format('no sidecar has refreshed %s within %s', name, timeout) using
        errcode = 'query_canceled',
        hint = 'Is one running? Start it with: pgtrickle run. The request stays, and is answered later.';
end
$$;

ALTER FUNCTION pgtrickle.raise_unanswered(name text, timeout interval) OWNER TO trickle;

CREATE FUNCTION pgtrickle.reanalyse(id bigint, reason text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    query_view oid;
begin
    perform from pgtrickle.pgt_stream_tables s where s.pgt_id = id for update;
    query_view := pgtrickle.view_of_stored(id);
    perform pgtrickle.adopt_query(id, query_view);
    perform pgtrickle.drop_view(query_view);
    update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = reason
    where s.pgt_id = id;
end
$$;

ALTER FUNCTION pgtrickle.reanalyse(id bigint, reason text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.record_dependencies(id bigint, query_view oid, reader oid) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    insert into pgtrickle.pgt_dependencies
        (pgt_id, source_type, source_relid, source_schema, source_name, columns_used, schema_fingerprint, cdc_mode)
    select record_dependencies.id, f.type, c.oid, n.nspname, c.relname,
        array(select a.attname::text from pg_attribute a
            where a.attrelid = c.oid and a.attnum = any (r.numbers) order by a.attnum),
        pgtrickle.fingerprint(f.type, c.oid, r.numbers)::text,
        case when c.relkind in ('m', 'f') then 'compare' when c.relkind <> 'v' then 'trigger' end
    from (
        select relation_id, array_agg(distinct number) filter (where number is not null) as numbers
        from pgtrickle.relations_of(query_view, reader) left join lateral unnest(columns) number on true
        group by relation_id
    ) r
    join pg_class c on c.oid = r.relation_id
    join pg_namespace n on n.oid = c.relnamespace
    cross join lateral (select case
        when c.relkind = 'v' then 'view'
        when c.relkind = 'm' then 'materialized_view'
        when c.relkind = 'f' then 'foreign_table'
        when exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = c.oid) then 'stream_table'
        else 'table' end) f(type);
    insert into pgtrickle.pgt_dependencies
        (pgt_id, source_type, source_relid, source_schema, source_name, schema_fingerprint)
    select record_dependencies.id, 'function', p.oid, n.nspname, p.oid::regprocedure::text,
        pgtrickle.fingerprint('function', p.oid, null)::text
    from pgtrickle.functions_of(query_view, reader) f(called)
    join pg_proc p on p.oid = f.called
    join pg_namespace n on n.oid = p.pronamespace
    where p.oid >= 16384
$$;

ALTER FUNCTION pgtrickle.record_dependencies(id bigint, query_view oid, reader oid) OWNER TO trickle;

CREATE PROCEDURE pgtrickle.refresh_and_wait(IN name text, IN timeout interval DEFAULT '00:01:00'::interval)
    LANGUAGE plpgsql
    AS $$
declare
    id bigint := pgtrickle.stream_table(name);
    request bigint;
    answer text;
    deadline timestamptz := pg_catalog.clock_timestamp() + timeout;
begin
    perform pgtrickle.check_may_refresh(id);
    request := pgtrickle.request_refresh(id);
    commit;
    loop
        answer := pgtrickle.answer_to(request);
        exit when answer is not null;
        if pg_catalog.clock_timestamp() > deadline then
            perform pgtrickle.raise_unanswered(name, timeout);
        end if;
        perform pg_catalog.pg_sleep(0.02);
        -- a transaction that stays open would hold back vacuum while we wait
        commit;
    end loop;
    if answer <> '' then
        raise exception 'refresh of % failed: %', name, answer using errcode = 'external_routine_exception',
            hint = 'pgtrickle.get_refresh_history shows the attempts.';
    end if;
end
$$;

ALTER PROCEDURE pgtrickle.refresh_and_wait(IN name text, IN timeout interval) OWNER TO trickle;

CREATE FUNCTION pgtrickle.refresh_lock() RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ select 1885828210 $$;

ALTER FUNCTION pgtrickle.refresh_lock() OWNER TO trickle;

CREATE FUNCTION pgtrickle.refresh_stream_table(name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    id bigint := pgtrickle.stream_table(name);
    asked_at timestamptz := pg_catalog.clock_timestamp();
    asked_in pg_snapshot := pg_catalog.pg_current_snapshot();
    timeout interval := coalesce(nullif(pg_catalog.current_setting('pgtrickle.wait_timeout', true), ''), '60 s');
    failure text;
begin
    perform pgtrickle.check_may_refresh(id);
    if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'refresh_stream_table cannot wait in a % transaction',
            pg_catalog.current_setting('transaction_isolation') using
            errcode = 'active_sql_transaction',
            hint = 'Such a transaction does not see what the sidecar commits. Refresh before it begins.';
    end if;
    if not pg_catalog.pg_try_advisory_xact_lock_shared(pgtrickle.refresh_lock(), id::integer) then
        raise exception 'the wish to refresh % cannot be made known', name using
            errcode = 'lock_not_available', hint = 'Somebody holds our advisory lock exclusively.';
    end if;
    while not pgtrickle.is_refreshed_since(id, asked_in) loop
        failure := pgtrickle.failure_since(id, asked_at);
        if failure is not null then
            raise exception 'refresh of % failed: %', name, failure using
                errcode = 'external_routine_exception',
                hint = 'pgtrickle.get_refresh_history shows the attempts.';
        end if;
        if pg_catalog.clock_timestamp() > asked_at + timeout then
            perform pgtrickle.raise_unanswered(name, timeout);
        end if;
        perform pg_catalog.pg_sleep(0.02);
    end loop;
end
$$;

ALTER FUNCTION pgtrickle.refresh_stream_table(name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.refuse_differing_expressions(source oid, numbers smallint[]) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    differing record;
begin
    select pgtrickle.printed(child.attrelid) as child, own.attname into differing
    from pg_attribute own
    join pg_attrdef e on e.adrelid = own.attrelid and e.adnum = own.attnum
    join pgtrickle.tree_of(source) t(id) on t.id <> source
    join pg_attribute child on child.attrelid = t.id and child.attname = own.attname
    left join pg_attrdef f on f.adrelid = child.attrelid and f.adnum = child.attnum
    where own.attrelid = source and own.attnum = any (numbers) and own.attgenerated = 'v'
        and pg_get_expr(f.adbin, f.adrelid) is distinct from pg_get_expr(e.adbin, e.adrelid)
    limit 1;
    if found then
        raise exception '%', format('%s computes column %I otherwise than %s', differing.child,
                differing.attname, pgtrickle.printed(source)) using
            errcode = 'feature_not_supported',
            hint = 'Give the column the same expression in all partitions, or do not use it.';
    end if;
end
$$;

ALTER FUNCTION pgtrickle.refuse_differing_expressions(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.refuse_direct_write() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if current_setting('pgtrickle.applying', true) = 'on'
        and pg_has_role(current_user, pgtrickle.sidecar_role(), 'MEMBER')
    then
        return null;
    end if;
    raise exception '%', format('%I.%I is a stream table and cannot be written directly',
            tg_table_schema, tg_table_name) using
        errcode = 'object_not_in_prerequisite_state',
        hint = 'Change its sources; the next refresh brings the change here.';
end
$$;

ALTER FUNCTION pgtrickle.refuse_direct_write() OWNER TO trickle;

CREATE FUNCTION pgtrickle.register(query_view oid, relation_id oid, options jsonb, settings jsonb, match_columns text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    id bigint;
begin
    perform pgtrickle.check_ownership(relation_id);
    perform pgtrickle.check_view(query_view, relation_id);
    if pg_relation_size(relation_id) > 0 then
        raise exception '%', format('table %s is not empty', pgtrickle.printed(relation_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = 'Let pgtrickle.create_stream_table create the table.';
    end if;
    insert into pgtrickle.pgt_stream_tables
        (pgt_relid, pgt_schema, pgt_name, pgt_owner, defining_query, refresh_mode, settings, match_columns)
    select c.oid, n.nspname, c.relname, c.relowner, '', 'AUTO', register.settings, register.match_columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation_id
    returning pgt_id into id;
    perform pgtrickle.store_options(id, options);
    perform pgtrickle.adopt_query(id, query_view);
    return id;
end
$$;

ALTER FUNCTION pgtrickle.register(query_view oid, relation_id oid, options jsonb, settings jsonb, match_columns text[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.relation_of(id bigint) RETURNS oid
    LANGUAGE plpgsql
    AS $$
declare
    s record;
begin
    select t.pgt_relid, t.pgt_schema, t.pgt_name into s
    from pgtrickle.pgt_stream_tables t where t.pgt_id = id;
    if not exists (select from pg_catalog.pg_class c where c.oid = s.pgt_relid) then
        raise exception '%', pg_catalog.format('table %I.%I was dropped', s.pgt_schema, s.pgt_name) using
            errcode = 'undefined_table', hint = 'Remove what is left with pgtrickle.drop_stream_table.';
    end if;
    return s.pgt_relid;
end
$$;

ALTER FUNCTION pgtrickle.relation_of(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.relations_of(query_view oid, reader oid) RETURNS TABLE(relation_id oid, checked_as oid, columns smallint[])
    LANGUAGE sql STABLE ROWS 5
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with rules as (select * from pgtrickle.rules_of(query_view, reader)),
    named as (
        select r.checked_as, d.refobjid as relation_id, d.refobjsubid::smallint as number
        from rules r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        union
        select r.checked_as, found[1]::oid, 0::smallint
        from rules r, regexp_matches(r.action, ':relid (\d+)', 'g') found
        where found[1]::oid not in (0, r.view_id)
        union
        -- a whole row counts as all of its columns; the rule does not say of which relation
        select r.checked_as, d.refobjid, a.attnum
        from rules r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        join pg_attribute a on a.attrelid = d.refobjid and a.attnum > 0 and not a.attisdropped
        where r.action ~ '\{VAR :varno \d+ :varattno 0 '
    )
    select relation_id, checked_as,
        coalesce(array_agg(number order by number) filter (where number <> 0), '{}')
    from named group by relation_id, checked_as
$$;

ALTER FUNCTION pgtrickle.relations_of(query_view oid, reader oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.release_source(source oid) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET client_min_messages TO 'warning'
    AS $$
declare
    patience text := current_setting('lock_timeout');
begin
    perform from pgtrickle.pgt_sources s where s.source_relid = source for update skip locked;
    if not found or exists (select from pgtrickle.pgt_dependencies d
        where d.source_relid = source and d.source_type not in ('view', 'function'))
    then
        return false;
    end if;
    if patience = '0' or patience::interval > interval '1s' then
        perform set_config('lock_timeout', '1s', true);
    end if;
    execute format('drop function if exists pgtrickle_changes.capture_%s() cascade', source);
    execute format('drop table if exists pgtrickle_changes.changes_%s_0, pgtrickle_changes.changes_%s_1',
        source, source);
    execute format('drop table if exists %s', pgtrickle.copy_of(source));
    delete from pgtrickle.pgt_sources s where s.source_relid = source;
    perform set_config('lock_timeout', patience, true);
    return true;
exception when lock_not_available then
    return false;
end
$$;

ALTER FUNCTION pgtrickle.release_source(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.relied_on(source oid, numbers smallint[]) RETURNS TABLE(column_name name, type_id oid)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select a.attname, a.atttypid
    from pg_attribute a
    where a.attrelid = source and a.attnum > 0 and not a.attisdropped and (a.attnum = any (numbers) or exists (
        select from pg_attrdef e join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = e.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid = source
        where e.adrelid = source and e.adnum = any (numbers) and d.refobjsubid = a.attnum))
    order by a.attnum
$$;

ALTER FUNCTION pgtrickle.relied_on(source oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.repair_source(source oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    level text := (select s.trigger_level from pgtrickle.pgt_sources s where s.source_relid = source);
begin
    perform pgtrickle.capture_source(source, '{}');
    perform set_config('lock_timeout', '2s', true);
    perform pgtrickle.create_trigger(source, level, w.relation_id, w.trigger_name, w.event)
    from pgtrickle.wanted_triggers(source, level) w
    where w.enabled = 'D';
    perform pgtrickle.enable_always(source);
    perform pgtrickle.note_always(source);
end
$$;

ALTER FUNCTION pgtrickle.repair_source(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.repair_stream_table(name text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    relation_id oid := pgtrickle.relation_of(pgtrickle.stream_table(name));
begin
    perform pgtrickle.prove_ownership(relation_id);
    perform pgtrickle.ask_for_repair(relation_id);
    return pg_catalog.format('%s will be computed anew; only the difference is written.', name);
end
$$;

ALTER FUNCTION pgtrickle.repair_stream_table(name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.replace_row_index(relation_id oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    index_id oid;
begin
    for index_id in
        select i.indexrelid from pg_index i join pg_class c on c.oid = i.indexrelid
        where i.indrelid = relation_id and c.relname ~ '_pgtrickle_row\d*$'
    loop
        execute format('drop index %s', pgtrickle.printed(index_id));
    end loop;
    perform pgtrickle.create_row_index(relation_id);
end
$_$;

ALTER FUNCTION pgtrickle.replace_row_index(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.request_refresh(id bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    asking name := pgtrickle.asking_role();
    request bigint;
begin
    if not pg_has_role(asking, (select c.relowner from pgtrickle.pgt_stream_tables s
        join pg_class c on c.oid = s.pgt_relid where s.pgt_id = id), 'USAGE')
    then
        raise exception 'only its owner may refresh a stream table' using
            errcode = 'insufficient_privilege', hint = 'Ask its owner, or become a member of that role.';
    end if;
    insert into pgtrickle.pgt_refresh_requests (pgt_id) values (id) returning request_id into request;
    return request;
end
$$;

ALTER FUNCTION pgtrickle.request_refresh(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.resume_stream_table(name text) RETURNS void
    LANGUAGE sql
    AS $$ select pgtrickle.alter_status(pgtrickle.stream_table(name), 'ACTIVE') $$;

ALTER FUNCTION pgtrickle.resume_stream_table(name text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.rotate(source oid, min_bytes bigint) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    captured pgtrickle.pgt_sources;
begin
    select * into captured from pgtrickle.pgt_sources s
    where s.source_relid = source for no key update skip locked;
    if not found or not pgtrickle.empty_retired(source, captured.active_buffer) then
        return false;
    end if;
    if pg_relation_size(format('pgtrickle_changes.changes_%s_%s', source, captured.active_buffer)::regclass)
        < min_bytes
    then
        return false;
    end if;
    update pgtrickle.pgt_sources s
    set active_buffer = 1 - s.active_buffer, retired_at = pg_current_snapshot()
    where s.source_relid = source;
    if captured.trigger_level <> 'none' then
        perform pgtrickle.compose_capture(source);
    end if;
    return true;
end
$$;

ALTER FUNCTION pgtrickle.rotate(source oid, min_bytes bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.row_security_applies(relation_id oid, role_id oid) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select c.relrowsecurity and not r.rolsuper and not r.rolbypassrls
        and (c.relforcerowsecurity or not pg_has_role(r.oid, c.relowner, 'USAGE'))
    from pg_class c, pg_roles r
    where c.oid = relation_id and r.oid = role_id
$$;

ALTER FUNCTION pgtrickle.row_security_applies(relation_id oid, role_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.rules_of(query_view oid, reader oid) RETURNS TABLE(view_id oid, rule_id oid, checked_as oid, action text)
    LANGUAGE sql STABLE ROWS 2
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    with recursive reached(view_id, checked_as) as (
        select query_view, reader
        union
        select c.oid, case when exists (
                select from unnest(c.reloptions) o where o ~* '^security_invoker=(true|on|yes|1|t|y)$')
            then r.checked_as else c.relowner end
        from reached r
        join pg_rewrite w on w.ev_class = r.view_id
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        join pg_class c on c.oid = d.refobjid and c.relkind = 'v'
    )
    select r.view_id, w.oid, r.checked_as, w.ev_action::text
    from reached r join pg_rewrite w on w.ev_class = r.view_id and w.rulename = '_RETURN'
$_$;

ALTER FUNCTION pgtrickle.rules_of(query_view oid, reader oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.schedule_seconds(schedule text) RETURNS double precision
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    given text := lower(btrim(schedule, E' \t\n\r'));
    seconds numeric;
begin
    if given is null or given in ('calculated', 'manual') then
        return null;
    end if;
    if given ~ '^@' or given ~ '^\S+(\s+\S+){4,5}$' then
        perform pgtrickle.check_cron(schedule);
        return null;
    end if;
    if given ~ '^[0-9]{1,9}$' then
        seconds := given::numeric;
    elsif given ~ '^([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d|w))+$' then
        select sum(part[1]::numeric * case part[2]
            when 'ms' then 0.001 when 's' then 1 when 'm' then 60
            when 'h' then 3600 when 'd' then 86400 when 'w' then 604800 end)
        into seconds
        from regexp_matches(given, '([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)', 'g') as part;
    end if;
    if seconds is null or seconds < 0.1 or seconds > 315576000 then
        raise exception '%', case when seconds is null then format('%L is not a schedule', schedule)
                else format('the interval %L is not between 100ms and ten years', schedule) end using
            errcode = 'invalid_parameter_value',
            hint = 'Use an interval such as 500ms, 1s, 5m or 1h30m (a bare number is seconds), cron such as '
                '*/5 * * * * or @hourly, ''calculated'' or ''manual''.';
    end if;
    return seconds;
end
$_$;

ALTER FUNCTION pgtrickle.schedule_seconds(schedule text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.session_settings() RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select jsonb_object_agg(name, current_setting(name))
    from unnest('{TimeZone,DateStyle,IntervalStyle,lc_monetary,lc_numeric,lc_time,bytea_output,
        extra_float_digits,default_text_search_config,xmlbinary,xmloption,timezone_abbreviations}'::text[]) name
$$;

ALTER FUNCTION pgtrickle.session_settings() OWNER TO trickle;

CREATE FUNCTION pgtrickle.side_written() RETURNS integer
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select ((date_part('epoch', now())::bigint / 60) % 2)::integer $$;

ALTER FUNCTION pgtrickle.side_written() OWNER TO trickle;

CREATE FUNCTION pgtrickle.sidecar_role() RETURNS oid
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select nspowner from pg_namespace where nspname = 'pgtrickle' $$;

ALTER FUNCTION pgtrickle.sidecar_role() OWNER TO trickle;

CREATE FUNCTION pgtrickle.source_named(source text) RETURNS oid
    LANGUAGE plpgsql STABLE
    AS $$
declare
    relation_id oid := pg_catalog.to_regclass((
        select pg_catalog.string_agg(pg_catalog.quote_ident(part), '.' order by number)
        from pg_catalog.unnest(pgtrickle.name_parts(source)) with ordinality as p(part, number)));
begin
    if relation_id is null then
        raise exception '%', pg_catalog.format('there is no table %s', source) using
            errcode = 'undefined_table', hint = 'Outside the search_path, write schema.name.';
    end if;
    if not pgtrickle.is_source(relation_id)
        and not exists (select from pgtrickle.pgt_gates g where g.source_relid = relation_id)
    then
        raise exception '%', pg_catalog.format('%s is not a source of any stream table',
                pgtrickle.printed(relation_id)) using
            errcode = 'wrong_object_type',
            hint = case when exists (select from pgtrickle.pgt_dependencies d where d.source_relid = relation_id)
                then 'It is a view: name the tables that it reads.'
                else 'pgtrickle.list_sources shows what a stream table reads.' end;
    end if;
    return relation_id;
end
$$;

ALTER FUNCTION pgtrickle.source_named(source text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.source_version(source oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select concat_ws(' ', c.xmin, c.ctid, c.relfilenode) from pg_class c where c.oid = source and c.relkind = 'm' $$;

ALTER FUNCTION pgtrickle.source_version(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.store_options(id bigint, options jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    o pgtrickle.pgt_stream_tables;
begin
    -- checked again: whoever calls us may have skipped the checks
    options := pgtrickle.options(options ->> 'schedule', options ->> 'refresh_mode',
        (options ->> 'initialize')::boolean, options ->> 'diamond_consistency',
        options ->> 'diamond_schedule_policy', options ->> 'cdc_mode', (options ->> 'append_only')::boolean,
        (options ->> 'pooler_compatibility_mode')::boolean, options ->> 'refresh_tier')
        || case when options ? 'schedule' then '{}' else '{"schedule": null}'::jsonb end;
    o := jsonb_populate_record(null::pgtrickle.pgt_stream_tables, options);
    update pgtrickle.pgt_stream_tables s set
        schedule = case coalesce(o.schedule, s.schedule, 'manual') when 'manual' then null
            else coalesce(o.schedule, s.schedule) end,
        refresh_mode = coalesce(o.refresh_mode, s.refresh_mode),
        initialize = coalesce(o.initialize, s.initialize),
        diamond_consistency = coalesce(o.diamond_consistency, s.diamond_consistency),
        diamond_schedule_policy = coalesce(o.diamond_schedule_policy, s.diamond_schedule_policy),
        cdc_mode = coalesce(o.cdc_mode, s.cdc_mode),
        append_only = coalesce(o.append_only, s.append_only),
        pooler_compatibility_mode = coalesce(o.pooler_compatibility_mode, s.pooler_compatibility_mode),
        refresh_tier = coalesce(o.refresh_tier, s.refresh_tier)
    where s.pgt_id = id;
end
$$;

ALTER FUNCTION pgtrickle.store_options(id bigint, options jsonb) OWNER TO trickle;

CREATE FUNCTION pgtrickle.stream_table(given text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
declare
    found_id bigint := pgtrickle.find_stream_table(given);
begin
    if found_id is null then
        raise exception '%', pg_catalog.format('there is no stream table %s', given) using
            errcode = 'undefined_table',
            hint = 'select name from pgtrickle.pgt_status() lists them; '
                'a bare name is looked up along the search_path.';
    end if;
    return found_id;
end
$$;

ALTER FUNCTION pgtrickle.stream_table(given text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.table_fingerprint(relation_id oid, numbers smallint[]) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select jsonb_build_object(
        'name', format('%I.%I', n.nspname, c.relname),
        'columns', (
            select coalesce(jsonb_object_agg(a.attnum, jsonb_build_array(
                a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attgenerated,
                case when a.attgenerated <> '' then md5(e.adbin::text) end)), '{}')
            from pg_attribute a
            left join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
            where a.attrelid = c.oid and a.attnum = any (numbers) and not a.attisdropped),
        'keys', (
            select coalesce(jsonb_agg(distinct k.names), '[]')
            from pg_index i cross join lateral (
                select jsonb_agg(a.attname order by a.attnum) as names, bool_and(a.attnotnull) as is_key
                from unnest(i.indkey) with ordinality as part(number, position)
                join pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
                where part.position <= i.indnkeyatts) k
            where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate
                and i.indpred is null and 0 <> all (i.indkey) and k.is_key),
        'tree', (
            with recursive tree(id) as (
                select c.oid
                union
                select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id)
            select jsonb_agg(id::bigint order by id) from tree),
        'row_security', c.relrowsecurity)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation_id
$$;

ALTER FUNCTION pgtrickle.table_fingerprint(relation_id oid, numbers smallint[]) OWNER TO trickle;

CREATE FUNCTION pgtrickle.touch(source oid) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ insert into pgtrickle_changes.touched_0 (source) values (source) $$;

ALTER FUNCTION pgtrickle.touch(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.touching(source oid, is_by_row boolean) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select format(case when is_by_row then $body$
        if coalesce(pg_catalog.current_setting('pgtrickle.touched_%1$s', true), '') operator(pg_catalog.=) '' then
            perform pg_catalog.set_config('pgtrickle.touched_%1$s', 'yes', true);
            %2$s
        end if;
        $body$ else '%2$s' end, source, format($body$
        if not pg_catalog.pg_try_advisory_xact_lock_shared(%2$s, %3$s) then
            perform pg_catalog.pg_notify('pgtrickle_wake', '');
        end if;
        if (pg_catalog.date_part('epoch', pg_catalog.now())::bigint operator(pg_catalog./) 60)
            operator(pg_catalog.%%) 2 operator(pg_catalog.=) 0
        then
            insert into pgtrickle_changes.touched_0 (source) values (%1$s::pg_catalog.oid);
        else
            insert into pgtrickle_changes.touched_1 (source) values (%1$s::pg_catalog.oid);
        end if;
        $body$, source, pgtrickle.wake_lock(), pgtrickle.wake_slot(source)))
$_$;

ALTER FUNCTION pgtrickle.touching(source oid, is_by_row boolean) OWNER TO trickle;

CREATE FUNCTION pgtrickle.tree_of(relation_id oid) RETURNS SETOF oid
    LANGUAGE sql STABLE ROWS 2
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with recursive tree(id) as (
        select relation_id
        union
        select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id
    )
    select id from tree
$$;

ALTER FUNCTION pgtrickle.tree_of(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.trigger_inventory() RETURNS TABLE(source_table text, source_oid oid, table_name text, trigger_name text, event text, is_present boolean, is_enabled boolean, fires_for_replication boolean)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select pgtrickle.printed(s.source_relid), s.source_relid, pgtrickle.printed(w.relation_id), w.trigger_name::text,
        w.event, w.trigger_id is not null, coalesce(w.enabled <> 'D', false), coalesce(w.enabled in ('A', 'R'), false)
    from pgtrickle.pgt_sources s
    cross join lateral pgtrickle.wanted_triggers(s.source_relid, s.trigger_level) w
    where exists (select from pg_class c where c.oid = s.source_relid)
    order by 1, 3, 5
$$;

ALTER FUNCTION pgtrickle.trigger_inventory() OWNER TO trickle;

CREATE FUNCTION pgtrickle.trigger_level(source oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case when exists (select from pg_inherits where inhrelid = source)
        or exists (select from pg_subscription_rel where srrelid in (select pgtrickle.tree_of(source)))
        then 'row' else 'statement' end
$$;

ALTER FUNCTION pgtrickle.trigger_level(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.undrain() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pgtrickle.check_may_drain();
    delete from pgtrickle.pgt_drain;
end
$$;

ALTER FUNCTION pgtrickle.undrain() OWNER TO trickle;

CREATE FUNCTION pgtrickle.unfit_relation(relation_id oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select case
        when n.nspname in ('pg_catalog', 'information_schema', 'pg_toast') or c.oid < 16384
            then 'the system catalog'
        when n.nspname in ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_state') then 'a table of pgtrickle itself:'
        when c.relpersistence = 't' then 'the temporary table'
        when c.relkind not in ('r', 'p', 'v', 'm', 'f') then 'something that is not a table:'
        when c.relpersistence = 'u' then 'the unlogged table'
        end
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation_id
$$;

ALTER FUNCTION pgtrickle.unfit_relation(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.ungate_source(source text) RETURNS void
    LANGUAGE sql
    AS $$ select pgtrickle.open_gate(pgtrickle.source_named(source)) $$;

ALTER FUNCTION pgtrickle.ungate_source(source text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.untrusted_code(relation_id oid) RETURNS SETOF text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select format('trigger %I calls %s', t.tgname, p.oid::regprocedure)
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = relation_id and not t.tgisinternal and t.tgenabled <> 'D' and p.oid >= 16384
        and not p.prosecdef and not pgtrickle.is_trusted(p.proowner)
    union
    select format('%s calls %s', pg_describe_object(d.classid, d.objid, 0), p.oid::regprocedure)
    from pg_depend d join pg_proc p on p.oid = d.refobjid
    where d.refclassid = 'pg_proc'::regclass and p.oid >= 16384 and not pgtrickle.is_trusted(p.proowner)
        and ((d.classid = 'pg_constraint'::regclass
                and d.objid in (select oid from pg_constraint where conrelid = relation_id))
            or (d.classid = 'pg_attrdef'::regclass
                and d.objid in (select oid from pg_attrdef where adrelid = relation_id))
            or (d.classid = 'pg_class'::regclass
                and d.objid in (select indexrelid from pg_index where indrelid = relation_id))
            or (d.classid = 'pg_policy'::regclass
                and d.objid in (select oid from pg_policy where polrelid = relation_id)))
$$;

ALTER FUNCTION pgtrickle.untrusted_code(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.version() RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ select '0.1.0'::text $$;

ALTER FUNCTION pgtrickle.version() OWNER TO trickle;

CREATE FUNCTION pgtrickle.view_fingerprint(relation_id oid) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select jsonb_build_object(
        'name', format('%I.%I', n.nspname, c.relname),
        'definition', md5(w.ev_action::text),
        'owner', c.relowner::bigint,
        'options', c.reloptions)
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_rewrite w on w.ev_class = c.oid and w.rulename = '_RETURN'
    where c.oid = relation_id
$$;

ALTER FUNCTION pgtrickle.view_fingerprint(relation_id oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.view_of(query text) RETURNS oid
    LANGUAGE plpgsql
    AS $$
declare
    probe refcursor;
    view_name text := pg_catalog.format('pgtrickle_%s',
        pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''));
    said text;
    advice text;
    state text;
begin
    if pg_catalog.btrim(coalesce(query, ''), E' \t\n\r;') = '' then
        raise exception 'the query is empty' using
            errcode = 'invalid_parameter_value', hint = 'Give one SELECT.';
    end if;
    begin
        open probe for execute query;
        close probe;
        execute pg_catalog.format('create temporary view %I as ', view_name) || query;
    exception when others then
        get stacked diagnostics said = message_text, advice = pg_exception_hint, state = returned_sqlstate;
        raise exception 'the query is refused: %',
            case state when '42P11' then 'it is not one SELECT' else said end using
            errcode = case state when '42P11' then '42601' else state end,
            hint = coalesce(nullif(advice, ''), case
                when state = '42P11' then 'Give one SELECT and nothing else.'
                when state = '42501' then 'The owner of a stream table needs SELECT on everything its query reads.'
                else 'Run the query by itself to see where it is wrong.' end);
    end;
    return pg_catalog.to_regclass('pg_temp.' || view_name);
end
$$;

ALTER FUNCTION pgtrickle.view_of(query text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.view_of_stored(id bigint) RETURNS oid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    view_name text := format('pgtrickle_%s', replace(gen_random_uuid()::text, '-', ''));
begin
    execute format('create temporary view %I as ', view_name)
        || (select s.defining_query from pgtrickle.pgt_stream_tables s where s.pgt_id = id);
    return to_regclass('pg_temp.' || view_name);
end
$$;

ALTER FUNCTION pgtrickle.view_of_stored(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.waits_for(id bigint) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select coalesce((select format('the database is drained since %s by %I',
            to_char(d.drained_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), d.drained_by)
        from pgtrickle.pgt_drain d), pgtrickle.gate_before(id))
$$;

ALTER FUNCTION pgtrickle.waits_for(id bigint) OWNER TO trickle;

CREATE FUNCTION pgtrickle.wake_lock() RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ select 1885828212 $$;

ALTER FUNCTION pgtrickle.wake_lock() OWNER TO trickle;

CREATE FUNCTION pgtrickle.wake_slot(source oid) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ select (source::bigint % 128)::integer $$;

ALTER FUNCTION pgtrickle.wake_slot(source oid) OWNER TO trickle;

CREATE FUNCTION pgtrickle.wanted_triggers(source oid, trigger_level text) RETURNS TABLE(relation_id oid, trigger_name name, event text, trigger_id oid, enabled "char")
    LANGUAGE sql STABLE ROWS 4
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select t.id, w.name, e.event, g.oid, g.tgenabled
    from pgtrickle.tree_of(source) t(id)
    join pg_class c on c.oid = t.id
    cross join unnest(array['insert', 'update', 'delete', 'truncate']) e(event)
    cross join lateral (select format('pgtrickle_%s_%s', source, e.event)::name) w(name)
    left join pg_trigger g on g.tgrelid = t.id and g.tgname = w.name
    where trigger_level <> 'none'
        and (e.event = 'truncate' or trigger_level = 'statement' or not c.relispartition or t.id = source)
    order by t.id, e.event
$$;

ALTER FUNCTION pgtrickle.wanted_triggers(source oid, trigger_level text) OWNER TO trickle;

CREATE FUNCTION pgtrickle.worker_allocation_status() RETURNS TABLE(database text, sidecars bigint, used bigint, quota bigint, queued bigint, behind bigint, tick_ms double precision)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select current_database()::text, count(*), coalesce(sum(i.busy), 0), coalesce(sum(i.workers), 0),
        coalesce(sum(i.queued), 0), coalesce(max(i.behind), 0), max(i.tick_ms)
    from pgtrickle.server_worker_inventory i where i.is_alive
$$;

ALTER FUNCTION pgtrickle.worker_allocation_status() OWNER TO trickle;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE pgtrickle.pgt_caches (
    is_only boolean DEFAULT true NOT NULL,
    installation uuid DEFAULT gen_random_uuid() NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    cleared_at timestamp with time zone,
    CONSTRAINT pgt_caches_is_only_check CHECK (is_only)
);

ALTER TABLE pgtrickle.pgt_caches OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_compiled (
    pgt_id bigint NOT NULL,
    code_version text NOT NULL,
    fingerprint text NOT NULL,
    generation bigint NOT NULL,
    payload bytea NOT NULL,
    compiled_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY pgtrickle.pgt_compiled ALTER COLUMN payload SET STORAGE EXTERNAL;

ALTER TABLE pgtrickle.pgt_compiled OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_dependencies (
    pgt_id bigint NOT NULL,
    source_type text NOT NULL,
    source_relid oid NOT NULL,
    source_schema name NOT NULL,
    source_name text NOT NULL,
    columns_used text[] DEFAULT '{}'::text[] NOT NULL,
    schema_fingerprint text NOT NULL,
    cdc_mode text,
    CONSTRAINT pgt_dependencies_source_type_check CHECK ((source_type = ANY (ARRAY['table'::text, 'stream_table'::text, 'materialized_view'::text, 'foreign_table'::text, 'view'::text, 'function'::text])))
);

ALTER TABLE pgtrickle.pgt_dependencies OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_drain (
    is_draining boolean DEFAULT true NOT NULL,
    drained_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    drained_by name NOT NULL,
    CONSTRAINT pgt_drain_is_draining_check CHECK (is_draining)
);

ALTER TABLE pgtrickle.pgt_drain OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_gates (
    source_relid oid NOT NULL,
    gated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    gated_by name NOT NULL
);

ALTER TABLE pgtrickle.pgt_gates OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_generation (
    id bigint NOT NULL,
    pgt_id bigint,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    noted_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE pgtrickle.pgt_generation OWNER TO trickle;

ALTER TABLE pgtrickle.pgt_generation ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pgtrickle.pgt_generation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pgtrickle.pgt_refresh_history (
    refresh_id bigint NOT NULL,
    pgt_id bigint NOT NULL,
    data_timestamp timestamp with time zone,
    start_time timestamp with time zone NOT NULL,
    end_time timestamp with time zone NOT NULL,
    action text NOT NULL,
    status text NOT NULL,
    rows_inserted bigint DEFAULT 0 NOT NULL,
    rows_deleted bigint DEFAULT 0 NOT NULL,
    delta_row_count bigint,
    duration_ms double precision NOT NULL,
    reason text,
    error_message text,
    initiated_by text NOT NULL,
    change_row_count bigint,
    strategy text,
    CONSTRAINT pgt_refresh_history_action_check CHECK ((action = ANY (ARRAY['NO_DATA'::text, 'FULL'::text, 'DIFFERENTIAL'::text, 'REINITIALIZE'::text, 'SKIP'::text]))),
    CONSTRAINT pgt_refresh_history_status_check CHECK ((status = ANY (ARRAY['RUNNING'::text, 'COMPLETED'::text, 'FAILED'::text, 'SKIPPED'::text]))),
    CONSTRAINT pgt_refresh_history_strategy_check CHECK ((strategy = ANY (ARRAY['delta'::text, 'load'::text, 'recompute'::text])))
);

ALTER TABLE pgtrickle.pgt_refresh_history OWNER TO trickle;

ALTER TABLE pgtrickle.pgt_refresh_history ALTER COLUMN refresh_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pgtrickle.pgt_refresh_history_refresh_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pgtrickle.pgt_refresh_requests (
    request_id bigint NOT NULL,
    pgt_id bigint NOT NULL,
    requested_in xid8 DEFAULT pg_current_xact_id() NOT NULL,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    answered_at timestamp with time zone,
    error_message text
);

ALTER TABLE pgtrickle.pgt_refresh_requests OWNER TO trickle;

ALTER TABLE pgtrickle.pgt_refresh_requests ALTER COLUMN request_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pgtrickle.pgt_refresh_requests_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pgtrickle.pgt_schema_version (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE pgtrickle.pgt_schema_version OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_sidecars (
    sidecar_id uuid NOT NULL,
    host text NOT NULL,
    process integer NOT NULL,
    version text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    workers integer NOT NULL,
    busy integer DEFAULT 0 NOT NULL,
    queued integer DEFAULT 0 NOT NULL,
    vitals jsonb DEFAULT '{}'::jsonb NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE pgtrickle.pgt_sidecars OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_sources (
    source_relid oid NOT NULL,
    columns_captured smallint[] DEFAULT '{}'::smallint[] NOT NULL,
    shape text,
    trigger_level text NOT NULL,
    is_always boolean DEFAULT false NOT NULL,
    active_buffer smallint DEFAULT 0 NOT NULL,
    retired_at pg_snapshot,
    captured_since timestamp with time zone DEFAULT now() NOT NULL,
    version text,
    filled_at timestamp with time zone,
    CONSTRAINT pgt_sources_active_buffer_check CHECK ((active_buffer = ANY (ARRAY[0, 1]))),
    CONSTRAINT pgt_sources_trigger_level_check CHECK ((trigger_level = ANY (ARRAY['statement'::text, 'row'::text, 'none'::text])))
);

ALTER TABLE pgtrickle.pgt_sources OWNER TO trickle;

CREATE TABLE pgtrickle.pgt_stream_tables (
    pgt_id bigint NOT NULL,
    pgt_relid oid NOT NULL,
    pgt_schema name NOT NULL,
    pgt_name name NOT NULL,
    pgt_owner oid NOT NULL,
    defining_query text NOT NULL,
    schedule text,
    refresh_mode text NOT NULL,
    effective_refresh_mode text,
    downgrade_reason text,
    status text DEFAULT 'INITIALIZING'::text NOT NULL,
    is_populated boolean DEFAULT false NOT NULL,
    data_timestamp timestamp with time zone,
    frontier pg_snapshot,
    upstream_frontier pg_snapshot,
    last_refresh_at timestamp with time zone,
    consecutive_errors integer DEFAULT 0 NOT NULL,
    last_error text,
    retry_at timestamp with time zone,
    needs_reinit boolean DEFAULT false NOT NULL,
    reinit_reason text,
    initialize boolean DEFAULT true NOT NULL,
    settings jsonb NOT NULL,
    match_columns text[] NOT NULL,
    pooler_compatibility_mode boolean DEFAULT false NOT NULL,
    refresh_tier text DEFAULT 'hot'::text NOT NULL,
    diamond_consistency text,
    diamond_schedule_policy text,
    cdc_mode text DEFAULT 'auto'::text NOT NULL,
    append_only boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    recent_ms double precision[] DEFAULT '{}'::double precision[] NOT NULL,
    behind_since timestamp with time zone,
    follows_clock boolean,
    CONSTRAINT pgt_stream_tables_cdc_mode_check CHECK ((cdc_mode = ANY (ARRAY['auto'::text, 'trigger'::text, 'wal'::text]))),
    CONSTRAINT pgt_stream_tables_effective_refresh_mode_check CHECK ((effective_refresh_mode = ANY (ARRAY['DIFFERENTIAL'::text, 'FULL'::text]))),
    CONSTRAINT pgt_stream_tables_refresh_mode_check CHECK ((refresh_mode = ANY (ARRAY['AUTO'::text, 'DIFFERENTIAL'::text, 'FULL'::text]))),
    CONSTRAINT pgt_stream_tables_refresh_tier_check CHECK ((refresh_tier = ANY (ARRAY['hot'::text, 'warm'::text, 'cold'::text, 'frozen'::text]))),
    CONSTRAINT pgt_stream_tables_status_check CHECK ((status = ANY (ARRAY['INITIALIZING'::text, 'ACTIVE'::text, 'SUSPENDED'::text, 'ERROR'::text])))
)
WITH (fillfactor='70');

ALTER TABLE pgtrickle.pgt_stream_tables OWNER TO trickle;

ALTER TABLE pgtrickle.pgt_stream_tables ALTER COLUMN pgt_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pgtrickle.pgt_stream_tables_pgt_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW pgtrickle.server_worker_inventory AS
 SELECT s.sidecar_id,
    s.host,
    s.process,
    s.version,
    s.started_at,
    s.seen_at,
    (s.seen_at > (now() - '00:00:15'::interval)) AS is_alive,
    s.workers,
    s.busy,
    s.queued,
    ((s.vitals ->> 'behind'::text))::bigint AS behind,
    ((s.vitals ->> 'tick_ms'::text))::double precision AS tick_ms,
    ((s.vitals ->> 'slowest_tick_ms'::text))::double precision AS slowest_tick_ms,
    COALESCE(((s.vitals ->> 'refreshes'::text))::bigint, (0)::bigint) AS refreshes,
    COALESCE(((s.vitals ->> 'failures'::text))::bigint, (0)::bigint) AS failures,
    s.vitals
   FROM pgtrickle.pgt_sidecars s;

ALTER TABLE pgtrickle.server_worker_inventory OWNER TO trickle;

CREATE VIEW pgtrickle.stream_tables_info AS
 SELECT s.pgt_id,
    COALESCE(n.nspname, s.pgt_schema) AS pgt_schema,
    COALESCE(c.relname, s.pgt_name) AS pgt_name,
    pg_get_userbyid(COALESCE(c.relowner, s.pgt_owner)) AS owner,
    s.defining_query,
    s.schedule,
    s.refresh_mode,
    s.effective_refresh_mode,
    s.downgrade_reason,
    s.status,
    s.is_populated,
    s.data_timestamp,
    (now() - s.data_timestamp) AS staleness,
    s.last_refresh_at,
    s.consecutive_errors,
        CASE
            WHEN pgtrickle.may_see_errors(s.pgt_owner) THEN s.last_error
            ELSE NULL::text
        END AS last_error,
    s.retry_at,
    s.needs_reinit,
        CASE
            WHEN pgtrickle.may_see_errors(s.pgt_owner) THEN s.reinit_reason
            ELSE NULL::text
        END AS reinit_reason,
    s.refresh_tier,
    s.cdc_mode,
    s.append_only,
    s.pooler_compatibility_mode,
    s.created_at
   FROM ((pgtrickle.pgt_stream_tables s
     LEFT JOIN pg_class c ON ((c.oid = s.pgt_relid)))
     LEFT JOIN pg_namespace n ON ((n.oid = c.relnamespace)));

ALTER TABLE pgtrickle.stream_tables_info OWNER TO trickle;

CREATE VIEW pgtrickle.visible_history AS
 SELECT h.refresh_id,
    h.pgt_id,
    h.data_timestamp,
    h.start_time,
    h.end_time,
    h.action,
    h.status,
    h.rows_inserted,
    h.rows_deleted,
    h.delta_row_count,
    h.duration_ms,
    h.reason,
        CASE
            WHEN pgtrickle.may_see_errors(s.pgt_owner) THEN h.error_message
            ELSE NULL::text
        END AS error_message,
    h.initiated_by
   FROM (pgtrickle.pgt_refresh_history h
     JOIN pgtrickle.pgt_stream_tables s ON ((s.pgt_id = h.pgt_id)));

ALTER TABLE pgtrickle.visible_history OWNER TO trickle;

CREATE TABLE pgtrickle_changes.touched_0 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    source oid NOT NULL
);

ALTER TABLE pgtrickle_changes.touched_0 OWNER TO trickle;

CREATE TABLE pgtrickle_changes.touched_1 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    source oid NOT NULL
);

ALTER TABLE pgtrickle_changes.touched_1 OWNER TO trickle;

INSERT INTO pgtrickle.pgt_caches VALUES (true, 'cf5db7d2-37fb-47e1-ad8a-12f81440930c', 0, NULL);

INSERT INTO pgtrickle.pgt_schema_version VALUES (1, '2026-11-17 05:00:00.177228+00');
INSERT INTO pgtrickle.pgt_schema_version VALUES (2, '2026-11-17 05:00:00.177228+00');
INSERT INTO pgtrickle.pgt_schema_version VALUES (3, '2026-11-17 05:00:00.177228+00');
INSERT INTO pgtrickle.pgt_schema_version VALUES (4, '2026-11-17 05:00:00.177228+00');
INSERT INTO pgtrickle.pgt_schema_version VALUES (5, '2026-11-17 05:00:00.177228+00');
INSERT INTO pgtrickle.pgt_schema_version VALUES (6, '2026-11-17 05:00:00.177228+00');

SELECT pg_catalog.setval('pgtrickle.pgt_generation_id_seq', 1, false);

SELECT pg_catalog.setval('pgtrickle.pgt_refresh_history_refresh_id_seq', 1, false);

SELECT pg_catalog.setval('pgtrickle.pgt_refresh_requests_request_id_seq', 1, false);

SELECT pg_catalog.setval('pgtrickle.pgt_stream_tables_pgt_id_seq', 1, false);

ALTER TABLE ONLY pgtrickle.pgt_caches
    ADD CONSTRAINT pgt_caches_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY pgtrickle.pgt_compiled
    ADD CONSTRAINT pgt_compiled_pkey PRIMARY KEY (pgt_id, code_version);

ALTER TABLE ONLY pgtrickle.pgt_dependencies
    ADD CONSTRAINT pgt_dependencies_pkey PRIMARY KEY (pgt_id, source_type, source_relid);

ALTER TABLE ONLY pgtrickle.pgt_drain
    ADD CONSTRAINT pgt_drain_pkey PRIMARY KEY (is_draining);

ALTER TABLE ONLY pgtrickle.pgt_gates
    ADD CONSTRAINT pgt_gates_pkey PRIMARY KEY (source_relid);

ALTER TABLE ONLY pgtrickle.pgt_generation
    ADD CONSTRAINT pgt_generation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY pgtrickle.pgt_refresh_history
    ADD CONSTRAINT pgt_refresh_history_pkey PRIMARY KEY (refresh_id);

ALTER TABLE ONLY pgtrickle.pgt_refresh_requests
    ADD CONSTRAINT pgt_refresh_requests_pkey PRIMARY KEY (request_id);

ALTER TABLE ONLY pgtrickle.pgt_schema_version
    ADD CONSTRAINT pgt_schema_version_pkey PRIMARY KEY (version);

ALTER TABLE ONLY pgtrickle.pgt_sidecars
    ADD CONSTRAINT pgt_sidecars_pkey PRIMARY KEY (sidecar_id);

ALTER TABLE ONLY pgtrickle.pgt_sources
    ADD CONSTRAINT pgt_sources_pkey PRIMARY KEY (source_relid);

ALTER TABLE ONLY pgtrickle.pgt_stream_tables
    ADD CONSTRAINT pgt_stream_tables_pgt_relid_key UNIQUE (pgt_relid);

ALTER TABLE ONLY pgtrickle.pgt_stream_tables
    ADD CONSTRAINT pgt_stream_tables_pkey PRIMARY KEY (pgt_id);

CREATE INDEX pgt_dependencies_source_relid_idx ON pgtrickle.pgt_dependencies USING btree (source_relid);

CREATE INDEX pgt_generation_xid_idx ON pgtrickle.pgt_generation USING btree (xid);

CREATE INDEX pgt_refresh_history_pgt_id_refresh_id_idx ON pgtrickle.pgt_refresh_history USING btree (pgt_id, refresh_id DESC);

CREATE INDEX pgt_refresh_requests_pgt_id_idx ON pgtrickle.pgt_refresh_requests USING btree (pgt_id) WHERE (answered_at IS NULL);

CREATE INDEX touched_0_xid_idx ON pgtrickle_changes.touched_0 USING btree (xid);

CREATE INDEX touched_1_xid_idx ON pgtrickle_changes.touched_1 USING btree (xid);

CREATE TRIGGER note_change AFTER UPDATE ON pgtrickle.pgt_stream_tables FOR EACH ROW WHEN (((((((((((((((((((old.pgt_relid IS DISTINCT FROM new.pgt_relid) OR (old.pgt_schema IS DISTINCT FROM new.pgt_schema)) OR (old.pgt_name IS DISTINCT FROM new.pgt_name)) OR (old.defining_query IS DISTINCT FROM new.defining_query)) OR (old.schedule IS DISTINCT FROM new.schedule)) OR (old.refresh_mode IS DISTINCT FROM new.refresh_mode)) OR (old.status IS DISTINCT FROM new.status)) OR (old.retry_at IS DISTINCT FROM new.retry_at)) OR (old.is_populated IS DISTINCT FROM new.is_populated)) OR (old.needs_reinit IS DISTINCT FROM new.needs_reinit)) OR (old.initialize IS DISTINCT FROM new.initialize)) OR (old.settings IS DISTINCT FROM new.settings)) OR (old.pooler_compatibility_mode IS DISTINCT FROM new.pooler_compatibility_mode)) OR (old.refresh_tier IS DISTINCT FROM new.refresh_tier)) OR (old.diamond_consistency IS DISTINCT FROM new.diamond_consistency)) OR (old.diamond_schedule_policy IS DISTINCT FROM new.diamond_schedule_policy)) OR (old.cdc_mode IS DISTINCT FROM new.cdc_mode)) OR (old.append_only IS DISTINCT FROM new.append_only))) EXECUTE FUNCTION pgtrickle.note_definition();

CREATE TRIGGER note_definition AFTER INSERT OR DELETE ON pgtrickle.pgt_stream_tables FOR EACH ROW EXECUTE FUNCTION pgtrickle.note_definition();

ALTER TABLE ONLY pgtrickle.pgt_compiled
    ADD CONSTRAINT pgt_compiled_pgt_id_fkey FOREIGN KEY (pgt_id) REFERENCES pgtrickle.pgt_stream_tables(pgt_id) ON DELETE CASCADE;

ALTER TABLE ONLY pgtrickle.pgt_dependencies
    ADD CONSTRAINT pgt_dependencies_pgt_id_fkey FOREIGN KEY (pgt_id) REFERENCES pgtrickle.pgt_stream_tables(pgt_id) ON DELETE CASCADE;

ALTER TABLE ONLY pgtrickle.pgt_refresh_history
    ADD CONSTRAINT pgt_refresh_history_pgt_id_fkey FOREIGN KEY (pgt_id) REFERENCES pgtrickle.pgt_stream_tables(pgt_id) ON DELETE CASCADE;

ALTER TABLE ONLY pgtrickle.pgt_refresh_requests
    ADD CONSTRAINT pgt_refresh_requests_pgt_id_fkey FOREIGN KEY (pgt_id) REFERENCES pgtrickle.pgt_stream_tables(pgt_id) ON DELETE CASCADE;

GRANT USAGE ON SCHEMA pgtrickle TO PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.adopt_query(id bigint, query_view oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.altered_condition(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.asking_role() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.cache_stats() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.capture_shape(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.capture_source(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.captured_expression(source oid, number smallint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.changed_dependencies(id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_copying(relation_id oid, columns smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_cycle(id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_functions(query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_may_drain() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_may_gate(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_ownership(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_query(query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_relation(relation_id oid, checked_as oid, reader oid, columns smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_rules(query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.check_view(query_view oid, relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.clear_caches() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.compare_source(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.comparison(source oid, buffer text, is_first boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.compose_capture(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.copy_of(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.copy_source(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.create_buffers(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.create_trigger(source oid, trigger_level text, relation_id oid, trigger_name name, event text) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.declared_columns(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.drop_state(id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.emit_alert(event text, facts jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.empty_retired(source oid, active smallint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.empty_touched(side integer, seen pg_snapshot) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.fingerprint(source_type text, source_id oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.fit_copy(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.function_fingerprint(function_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.functions_of(query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.index_copy(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.intact_columns(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.is_altered(source oid, names name[], types oid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.is_trusted(owner_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.may_select(role_id oid, relation_id oid, columns smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.may_start() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.misfit(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.note_definition() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.plain_indexes(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.planned_condition(source oid, numbers smallint[], rows_of name) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.raise_generation(id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.reanalyse(id bigint, reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.record_dependencies(id bigint, query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.refuse_differing_expressions(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.relations_of(query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.release_source(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.relied_on(source oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.repair_source(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.rotate(source oid, min_bytes bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.row_security_applies(relation_id oid, role_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.rules_of(query_view oid, reader oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.side_written() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.source_version(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.store_options(id bigint, options jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.table_fingerprint(relation_id oid, numbers smallint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.touch(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.touching(source oid, is_by_row boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.trigger_level(source oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.unfit_relation(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.untrusted_code(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.view_fingerprint(relation_id oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.view_of_stored(id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.wake_lock() FROM PUBLIC;

REVOKE ALL ON FUNCTION pgtrickle.wake_slot(source oid) FROM PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_caches TO PUBLIC;

GRANT SELECT(pgt_id) ON TABLE pgtrickle.pgt_compiled TO PUBLIC;

GRANT SELECT(code_version) ON TABLE pgtrickle.pgt_compiled TO PUBLIC;

GRANT SELECT(fingerprint) ON TABLE pgtrickle.pgt_compiled TO PUBLIC;

GRANT SELECT(generation) ON TABLE pgtrickle.pgt_compiled TO PUBLIC;

GRANT SELECT(compiled_at) ON TABLE pgtrickle.pgt_compiled TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_dependencies TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_drain TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_gates TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_generation TO PUBLIC;

GRANT SELECT(refresh_id) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(pgt_id) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(data_timestamp) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(start_time) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(end_time) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(action) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(status) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(rows_inserted) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(rows_deleted) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(delta_row_count) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(duration_ms) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(reason) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(initiated_by) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(change_row_count) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(strategy) ON TABLE pgtrickle.pgt_refresh_history TO PUBLIC;

GRANT SELECT(request_id) ON TABLE pgtrickle.pgt_refresh_requests TO PUBLIC;

GRANT SELECT(pgt_id) ON TABLE pgtrickle.pgt_refresh_requests TO PUBLIC;

GRANT SELECT(requested_in) ON TABLE pgtrickle.pgt_refresh_requests TO PUBLIC;

GRANT SELECT(requested_at) ON TABLE pgtrickle.pgt_refresh_requests TO PUBLIC;

GRANT SELECT(answered_at) ON TABLE pgtrickle.pgt_refresh_requests TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_schema_version TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_sidecars TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.pgt_sources TO PUBLIC;

GRANT SELECT(pgt_id) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(pgt_relid) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(pgt_schema) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(pgt_name) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(pgt_owner) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(defining_query) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(schedule) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(refresh_mode) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(effective_refresh_mode) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(downgrade_reason) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(status) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(is_populated) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(data_timestamp) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(frontier) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(upstream_frontier) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(last_refresh_at) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(consecutive_errors) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(retry_at) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(needs_reinit) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(initialize) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(settings) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(match_columns) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(pooler_compatibility_mode) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(refresh_tier) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(diamond_consistency) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(diamond_schedule_policy) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(cdc_mode) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(append_only) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(created_at) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(recent_ms) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(behind_since) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT(follows_clock) ON TABLE pgtrickle.pgt_stream_tables TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.server_worker_inventory TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.stream_tables_info TO PUBLIC;

GRANT SELECT ON TABLE pgtrickle.visible_history TO PUBLIC;
