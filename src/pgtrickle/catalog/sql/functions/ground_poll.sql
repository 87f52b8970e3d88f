-- ground_poll: which stream tables rely on catalog rows that were written since they were recorded.

-- ground_state: whether anything that these stream tables rely on has another version than recorded, and the
-- versions of everything that PostgreSQL executes in its current state whatever the snapshot: code, types,
-- comparisons, inheritance. A refresh calls this in its snapshot, and again in the newest one before it commits.
-- Planning takes twenty times as long as executing, so the plan must work for all ids.
create or replace function pgtrickle_internal.ground_state(ids bigint[]) returns table (is_moved boolean, code bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    return query
    with present(pgt_id, kind, object_id, stored, version, code) as (
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, 0::bigint
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.own_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'itself'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, e.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.source_ground_version(g.object_id) v on true
        left join lateral pgtrickle_internal.edges_version(g.object_id) e on true
        where g.pgt_id = any (ids) and g.kind = 'source'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.view_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'view'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.function_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'function'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.type_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'type'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.family_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'family'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.collation_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'collation'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, 0
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.schema_version(g.object_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'schema'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.names_version(g.detail) v on true
        where g.pgt_id = any (ids) and g.kind = 'names'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g cross join pgtrickle_internal.conversions_version() v
        where g.pgt_id = any (ids) and g.kind = 'conversions'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, v.version
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.text_search_version() v on true
        where g.pgt_id = any (ids) and g.kind = 'text_search'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, 0
        from pgtrickle.pgt_ground g left join lateral pgtrickle_internal.bindings_version(g.pgt_id) v on true
        where g.pgt_id = any (ids) and g.kind = 'bindings'
        union all
        select g.pgt_id, g.kind, g.object_id, g.version, v.version, 0
        from pgtrickle.pgt_ground g cross join pgtrickle_internal.roles_version() v
        where g.pgt_id = any (ids) and g.kind = 'roles'
    )
    select coalesce(bool_or(p.stored is distinct from p.version), false)
            or count(*) filter (where p.kind = 'itself') < cardinality(ids),
        coalesce(bit_xor(hash_record_extended(row(p.kind, p.object_id, p.code), 8)), 0)
    from present p;
end
$$;

-- moved_ground: the stream tables that rely on anything with another version than recorded, and those whose ground
-- was never recorded. Each object is checked once, however many stream tables share it. Joins other than nested
-- loops would compute the versions of everything in the catalogs.
create or replace function pgtrickle_internal.moved_ground() returns setof bigint
language plpgsql stable set search_path = pg_catalog, pg_temp set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
    return query
    with objects as materialized (
        select distinct g.kind, g.object_id, g.detail, g.version from pgtrickle.pgt_ground g
    ),
    moved as materialized (
        select o.* from objects o left join lateral pgtrickle_internal.own_version(o.object_id) v on true
        where o.kind = 'itself' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.source_ground_version(o.object_id) v on true
        where o.kind = 'source' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.view_version(o.object_id) v on true
        where o.kind = 'view' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.function_version(o.object_id) v on true
        where o.kind = 'function' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.type_version(o.object_id) v on true
        where o.kind = 'type' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.family_version(o.object_id) v on true
        where o.kind = 'family' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.collation_version(o.object_id) v on true
        where o.kind = 'collation' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.schema_version(o.object_id) v on true
        where o.kind = 'schema' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.names_version(o.detail) v on true
        where o.kind = 'names' and o.version is distinct from v.version
        union all
        select o.* from objects o cross join pgtrickle_internal.conversions_version() v
        where o.kind = 'conversions' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.text_search_version() v on true
        where o.kind = 'text_search' and o.version is distinct from v.version
        union all
        select o.* from objects o left join lateral pgtrickle_internal.bindings_version(o.detail::bigint) v on true
        where o.kind = 'bindings' and o.version is distinct from v.version
        union all
        select o.* from objects o cross join pgtrickle_internal.roles_version() v
        where o.kind = 'roles' and o.version is distinct from v.version
    )
    select g.pgt_id from moved m join pgtrickle.pgt_ground g on g.object_id = m.object_id and g.kind = m.kind
        and g.detail = m.detail and g.version is not distinct from m.version
    union
    select s.pgt_id from pgtrickle.pgt_stream_tables s
    where s.pgt_id not in (select g.pgt_id from pgtrickle.pgt_ground g where g.kind = 'itself');
end
$$;

-- poll_ground: the same, unless no transaction has ended since the snapshot `seen`: then nothing can have changed.
-- If roles or conversions have changed, which all stream tables share, the stream tables that are not affected are
-- settled here.
create or replace function pgtrickle_internal.poll_ground(seen text) returns table (snapshot text, moved bigint[])
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    snapshot := pg_current_snapshot()::text;
    if snapshot = seen then
        return next;
        return;
    end if;
    perform pgtrickle_internal.settle_shared_ground();
    moved := array(select m.id from pgtrickle_internal.moved_ground() m(id) order by m.id);
    return next;
end
$$;

-- settle_shared_ground: record the current version of what all stream tables share, for those that the change does
-- not affect.
create or replace function pgtrickle_internal.settle_shared_ground() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    present bigint := (select v.version from pgtrickle_internal.roles_version() v);
begin
    if exists (select from pgtrickle.pgt_ground g where g.kind = 'roles' having min(g.version) <> present
            or max(g.version) <> present) then
        update pgtrickle.pgt_ground g set version = present
        from pgtrickle.pgt_stream_tables s
        where g.kind = 'roles' and g.version is distinct from present and s.pgt_id = g.pgt_id
            and s.ground_error is null
            and not exists (select from pgtrickle_internal.lost_rights(g.pgt_id))
            and not exists (select from pgtrickle_internal.lost_own_rights(g.pgt_id));
    end if;
    present := (select v.version from pgtrickle_internal.conversions_version() v);
    if exists (select from pgtrickle.pgt_ground g where g.kind = 'conversions' having min(g.version) <> present
            or max(g.version) <> present) then
        update pgtrickle.pgt_ground g set version = present
        from pgtrickle.pgt_stream_tables s
        where g.kind = 'conversions' and g.version is distinct from present and s.pgt_id = g.pgt_id
            and s.ground_error is null
            and g.content = pgtrickle_internal.content_of(g.kind, g.object_id, g.detail, g.content);
    end if;
end
$$;
