-- source_activity: about how many rows the tables have, and how many rows were written in them in an hour on average
-- since the statistics of the database were reset; null if nobody has counted.
select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint,
    (sum(s.n_tup_ins + s.n_tup_upd + s.n_tup_del)
        / greatest(extract(epoch from now() - min(coalesce(d.stats_reset, pg_catalog.pg_postmaster_start_time()))) / 3600, 0.02))::float8
from pg_catalog.pg_class c
left join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
cross join (select stats_reset from pg_catalog.pg_stat_database where datname = current_database()) d
where c.oid = any (%(sources)s::oid[])
