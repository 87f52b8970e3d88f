-- missing_grants: the privileges that a query still needs to become a stream table, as GRANT statements.
-- Reads the catalogs of PostgreSQL only, so it runs as the caller, with any arguments.

-- missing_grants: for `reader`, who would own the stream table, for owners of views below, and for the sidecar.
create or replace function pgtrickle_internal.missing_grants(query_view oid, reader oid) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with read as (
        select r.relation_id, r.checked_as, r.columns, c.relkind as kind, c.relnamespace as namespace,
            pgtrickle_internal.printed(c.oid) as printed, c.relkind = 'v' and exists (
                select from pg_options_to_table(c.reloptions) o
                where o.option_name = 'security_barrier' and o.option_value::boolean) as is_barrier
        from pgtrickle_internal.relations_of(query_view, reader) r join pg_class c on c.oid = r.relation_id
    ),
    needed(rank, what, role_id) as (
        select 1, format('usage on schema %I', n.nspname), u.role_id
        from read r join pg_namespace n on n.oid = r.namespace
        cross join lateral (values (r.checked_as), (pgtrickle.sidecar_role())) u(role_id)
        where not has_schema_privilege(u.role_id, n.oid, 'USAGE')
        union
        select 2, format('select on %s', r.printed), r.checked_as from read r
        where not pgtrickle_internal.may_select(r.checked_as, r.relation_id, r.columns)
        union
        select 3, format('select on %s', r.printed), pgtrickle.sidecar_role() from read r
        where (r.kind <> 'v' or r.is_barrier)
            and not pgtrickle_internal.may_select(pgtrickle.sidecar_role(), r.relation_id, r.columns)
        union
        select 4, format('trigger on %s', pgtrickle_internal.printed(t.id)), pgtrickle.sidecar_role()
        from read r cross join lateral pgtrickle_internal.tree_of(r.relation_id) t(id)
        where r.kind in ('r', 'p') and not has_table_privilege(pgtrickle.sidecar_role(), t.id, 'TRIGGER')
        union
        select 5, format('execute on function %s', p.oid::regprocedure), u.role_id
        from pgtrickle_internal.rules_of(query_view, reader) r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_proc'::regclass
        join pg_proc p on p.oid = d.refobjid
        cross join lateral (values (reader), (pgtrickle.sidecar_role())) u(role_id)
        where not has_function_privilege(u.role_id, p.oid, 'EXECUTE')
    )
    select format('grant %s to %I', n.what, pg_get_userbyid(n.role_id)) from needed n order by n.rank, 1
$$;

-- missing_room: the same for the table itself and its schema.
create or replace function pgtrickle_internal.missing_room(schema_name text) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('grant %s on schema %I to %I', u.privilege, n.nspname, pg_get_userbyid(u.role_id))
    from pg_namespace n
    cross join lateral (values ('create', quote_ident(current_user)::regrole::oid), ('usage', quote_ident(current_user)::regrole::oid),
        ('usage', pgtrickle.sidecar_role())) u(privilege, role_id)
    where n.nspname = schema_name and not has_schema_privilege(u.role_id, n.oid, u.privilege)
    union
    select format('grant temporary on database %I to %I', d.datname, current_user)
    from pg_database d
    where d.datname = current_database() and not has_database_privilege(current_user, d.oid, 'TEMPORARY')
    order by 1
$$;

-- trial_schema: the schema in which a query without a name is tried. It is the first of these in which the caller may
-- create stream tables, or any other such schema; if there is none, the first of these, whose grants are then missing.
create or replace function pgtrickle_internal.trial_schema(path name[]) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce((
        select n.nspname
        from pg_namespace n
        where has_schema_privilege(n.oid, 'CREATE') and has_schema_privilege(n.oid, 'USAGE')
            and has_schema_privilege(pgtrickle.sidecar_role(), n.oid, 'USAGE')
            and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
            and n.nspname not in ('pgtrickle', 'pgtrickle_internal', 'pgtrickle_changes', 'pgtrickle_state')
        order by array_position(path, n.nspname), n.nspname
        limit 1), path[1])::text
    where cardinality(path) > 0
$$;
