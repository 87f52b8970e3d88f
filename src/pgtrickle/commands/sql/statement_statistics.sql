-- statement_statistics: the statements of the current role in this database that took the most time. `{view}` and
-- `{info}` are those of pg_stat_statements. Texts of other roles are left out: planning them could run their functions
-- with our rights.
select s.queryid::text as id, s.query, s.calls, s.total_exec_time as milliseconds, s.rows,
    greatest(extract(epoch from now() - i.stats_reset) / 3600, 0.02)::float8 as hours
from {view} s cross join {info} i
where s.dbid = (select oid from pg_catalog.pg_database where datname = current_database())
    and s.userid = quote_ident(current_user)::pg_catalog.regrole and s.query ~* %(pattern)s
    and s.query !~ 'pgtrickle'
order by s.total_exec_time desc limit %(limit)s
