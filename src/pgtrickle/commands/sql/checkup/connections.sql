-- connections: the connections that ordinary roles can still open, and the limits of the sidecar's role and of the
-- database (-1 is none). Every role may run it.
select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0)
        - (select count(*)::int from pg_stat_activity a where a.backend_type = 'client backend'),
    (select r.rolconnlimit from pg_roles r where r.oid = pgtrickle.sidecar_role() and not r.rolsuper),
    (select d.datconnlimit from pg_database d where d.datname = current_database())
