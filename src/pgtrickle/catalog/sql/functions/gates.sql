-- gates: while a source is gated, the stream tables that read it, directly or through others, are not refreshed.
-- Its changes are still captured. A refresh that is running when the gate closes finishes. A role that may write
-- to a source may gate and ungate it, and so may the sidecar's role.

-- is_source: whether a stream table tracks the rows of a relation.
create or replace function pgtrickle_internal.is_source(relation_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_dependencies d
        where d.source_relid = relation_id and d.source_type not in ('view', 'function'))
$$;

-- source_named: the relation of that name, along the caller's search_path. It must be a source, or gated.
create or replace function pgtrickle_internal.source_named(source text) returns oid
language plpgsql stable
as $$
declare
    relation_id oid := pg_catalog.to_regclass((
        select pg_catalog.string_agg(pg_catalog.quote_ident(part), '.' order by number)
        from pg_catalog.unnest(pgtrickle_internal.name_parts(source)) with ordinality as p(part, number)));
begin
    perform pgtrickle_internal.check_not_copy();
    if relation_id is null then
        raise exception '%', pg_catalog.format('there is no table %s', source) using
            errcode = 'undefined_table', hint = 'If its schema is not in the search_path, write schema.name.';
    end if;
    if not pgtrickle_internal.is_source(relation_id)
        and not exists (select from pgtrickle.pgt_gates g
            where g.source_relid operator(pg_catalog.=) relation_id)
    then
        raise exception '%', pg_catalog.format('%s is not a source of any stream table',
                pgtrickle_internal.printed(relation_id)) using
            errcode = 'wrong_object_type',
            hint = case when exists (select from pgtrickle.pgt_dependencies d
                    where d.source_relid operator(pg_catalog.=) relation_id)
                then 'It is a view: name the tables that it reads.'
                else 'select * from pgtrickle.list_sources(name) lists what a stream table reads.' end;
    end if;
    return relation_id;
end
$$;

-- gate_source: pause every stream table that depends on a source. Safe to run again.
create or replace function pgtrickle.gate_source(source text) returns void
language sql as $$ select pgtrickle_internal.close_gate(pgtrickle_internal.source_named(source)) $$;
comment on function pgtrickle.gate_source(text) is
    E'Pause every stream table that depends on this source, for example during a bulk load. Call it with '
    'SELECT. You need write access to the source, or the rights of the role that owns pgtrickle.\n'
    '\nsource: The table, with or without a schema.';

-- ungate_source: resume the stream tables that depend on a source. Safe to run again.
create or replace function pgtrickle.ungate_source(source text) returns void
language sql as $$ select pgtrickle_internal.open_gate(pgtrickle_internal.source_named(source)) $$;
comment on function pgtrickle.ungate_source(text) is
    E'Resume the stream tables that gate_source paused. Call it with SELECT. You need write access to the '
    'source, or the rights of the role that owns pgtrickle.\n'
    '\nsource: The table, with or without a schema.';

-- may_gate: whether the caller may write to a source, or act as the sidecar's role, which can stop every refresh.
create or replace function pgtrickle_internal.may_gate(relation_id oid) returns boolean
language sql stable as $$
    select coalesce(pg_catalog.has_table_privilege(relation_id, 'INSERT, UPDATE, DELETE, TRUNCATE')
        or pg_catalog.pg_has_role(pgtrickle.sidecar_role(), 'USAGE'), false)
$$;

-- own_gates: the gates that the current role may open and close. See own_requests for why this is a view.
create or replace view pgtrickle_internal.own_gates with (security_barrier) as
select g.source_relid, g.gated_by from pgtrickle.pgt_gates g where pgtrickle_internal.may_gate(g.source_relid)
with cascaded check option;

-- note_gate: record the role that closes a gate; PostgreSQL provides it, so it cannot be forged.
create or replace function pgtrickle_internal.note_gate() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    new.gated_by := current_user;
    return new;
end
$$;
create or replace trigger note_gate before insert on pgtrickle.pgt_gates
    for each row execute function pgtrickle_internal.note_gate();

-- tell_gates: notify the sidecars, and remove the gates of tables that no longer exist.
create or replace function pgtrickle_internal.tell_gates() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgtrickle.pgt_gates g where not exists (select from pg_class c where c.oid = g.source_relid);
    perform pgtrickle_internal.raise_generation(null);
    return null;
end
$$;
create or replace trigger tell_gates after insert or delete on pgtrickle.pgt_gates
    for each row execute function pgtrickle_internal.tell_gates();

-- check_may_gate: refuse unless the caller may write to the source.
create or replace function pgtrickle_internal.check_may_gate(relation_id oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not pgtrickle_internal.may_gate(relation_id) then
        raise exception '%', format('you need write access to %s to gate or ungate it', pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = (select format('Its owner is %I. For example: grant insert on %s to %I', pg_get_userbyid(relowner),
                pgtrickle_internal.printed(relation_id), current_user) from pg_class where oid = relation_id);
    end if;
end
$$;

create or replace function pgtrickle_internal.close_gate(relation_id oid) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_not_copy();
    perform pgtrickle_internal.check_may_gate(relation_id);
    insert into pgtrickle_internal.own_gates (source_relid)
    select relation_id where pgtrickle_internal.is_source(relation_id)
    on conflict do nothing;
end
$$;

create or replace function pgtrickle_internal.open_gate(relation_id oid) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_not_copy();
    perform pgtrickle_internal.check_may_gate(relation_id);
    delete from pgtrickle_internal.own_gates g where g.source_relid = relation_id;
end
$$;

-- gated_tables: the stream tables that wait, each with the gates that it waits for.
create or replace function pgtrickle_internal.gated_tables() returns table (pgt_id bigint, source_relid oid)
language sql stable set search_path = pg_catalog, pg_temp
as $$
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

-- gate_before: the gate that a stream table waits for, in words; null if there is none.
create or replace function pgtrickle_internal.gate_before(id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('%s has been gated since %s by %I', pgtrickle_internal.printed(g.source_relid),
        to_char(g.gated_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), g.gated_by)
    from pgtrickle.pgt_gates g
    where exists (select from pgtrickle_internal.gated_tables() t where t.pgt_id = id and t.source_relid = g.source_relid)
    order by g.gated_at limit 1
$$;

-- gated_sources: the gated sources, since when and by whom, and the stream tables that wait for them.
create or replace function pgtrickle.gated_sources() returns table (
    source_table text, source_oid oid, gated_at timestamptz, gated_by name, stream_tables text[])
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select n.source_table, g.source_relid, g.gated_at, g.gated_by,
        array(select pgtrickle_internal.shown_name(t.pgt_id) from pgtrickle_internal.gated_tables() t
            where t.source_relid = g.source_relid order by 1)
    from pgtrickle.pgt_gates g
    cross join lateral (select case when pgtrickle.is_copy()
        then (select min(format('%I.%I', d.source_schema, d.source_name)) from pgtrickle.pgt_dependencies d
            where d.source_relid = g.source_relid and d.source_type <> 'function')
        else pgtrickle_internal.printed(g.source_relid) end) n(source_table)
    where n.source_table is not null
    order by g.gated_at
$$;
comment on function pgtrickle.gated_sources() is
    E'List the gated sources, since when and by whom they are gated, and the stream tables that wait for '
    'them. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\nsource_table: The gated table.'
    '\nsource_oid: Its OID.'
    '\ngated_at: When it was gated.'
    '\ngated_by: The role that gated it.'
    '\nstream_tables: The stream tables that wait for it, directly or through others.';
