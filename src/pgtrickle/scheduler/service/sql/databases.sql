-- databases: the databases of the server that this role may connect to. Every role may run it.
select d.datname from pg_catalog.pg_database d
where d.datallowconn and not d.datistemplate and pg_catalog.has_database_privilege(d.oid, 'CONNECT')
order by d.datname
