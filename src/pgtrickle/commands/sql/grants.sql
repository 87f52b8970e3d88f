-- grants: the privileges that roles still need for stream tables over some sources, each as part of a GRANT.
-- Parameters: `sidecar`, the role that installs and serves; `owners`, the roles that create stream tables, which may
-- include the first; `schema`, where they create them; `sources`, the OIDs of what they read, or null for every
-- table. A role that does not exist yet has what everybody has. Every role may run it, also before an installation.
with roles(name, grantee, is_sidecar, is_owner) as (
    select r.name, coalesce((select p.rolname::text from pg_roles p where p.rolname = r.name), 'public'),
        r.name = %(sidecar)s, r.name = any (%(owners)s::text[])
    from (select distinct unnest(%(owners)s::text[] || %(sidecar)s::text)) r(name)
), sources as (
    select c.oid, c.relkind, n.oid as namespace, format('%%I.%%I', n.nspname, c.relname) as printed
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where case when %(sources)s::oid[] is not null then c.oid = any (%(sources)s::oid[])
        else c.relkind in ('r', 'p', 'm', 'f') and c.relpersistence = 'p' and not c.relispartition
            and n.nspname !~ '^(pg_|pgtrickle($|_)|information_schema$)' end
), needed(rank, privilege, object, role) as (
    select 1, p.privilege, format('database %%I', d.datname), r.name
    from roles r cross join pg_database d
    cross join lateral (values ('create', r.is_sidecar), ('connect', true), ('temporary', true)) p(privilege, is_needed)
    where d.datname = current_database() and p.is_needed
        and not has_database_privilege(r.grantee, d.oid, p.privilege)
    union
    select 2, p.privilege, format('schema %%I', n.nspname), r.name
    from roles r cross join pg_namespace n
    cross join lateral (values
        ('create', r.is_owner and n.nspname = %(schema)s),
        ('usage', n.nspname = %(schema)s or n.oid in (select s.namespace from sources s))) p(privilege, is_needed)
    where p.is_needed and not has_schema_privilege(r.grantee, n.oid, p.privilege)
    union
    select 3, 'select', s.printed, r.name
    from roles r cross join sources s where not has_table_privilege(r.grantee, s.oid, 'SELECT')
    union
    select 3, 'trigger', format('%%I.%%I', n.nspname, c.relname), r.name
    from roles r cross join sources s
    cross join lateral (
        with recursive tree(id) as (
            select s.oid
            union
            select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id
        )
        select id from tree
    ) t
    join pg_class c on c.oid = t.id join pg_namespace n on n.oid = c.relnamespace
    where r.is_sidecar and s.relkind in ('r', 'p') and not has_table_privilege(r.grantee, t.id, 'TRIGGER')
)
select n.rank, string_agg(n.privilege, ', ' order by n.privilege), n.object, n.role
from needed n group by n.rank, n.object, n.role order by n.rank, n.role <> %(sidecar)s, n.role, n.object
