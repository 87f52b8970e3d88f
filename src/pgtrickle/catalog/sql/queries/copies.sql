-- copies: the running COPY statements of this role's pgtrickle sessions in this database, with their row counts.
select p.pid, a.query_start, p.command, p.tuples_processed
from pg_stat_progress_copy p
join pg_stat_activity a on a.pid = p.pid
where p.datname = current_database() and a.usename = current_user and a.application_name like 'pgtrickle%'
