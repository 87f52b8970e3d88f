-- long_transactions: transactions, prepared transactions and replication slots that hold back what can be removed,
-- each with who, its age in seconds, what it does, and what to do. Without pg_read_all_stats, only the caller's own
-- sessions show when they began. Refreshes and loads of the sidecar do not count.
select format('process %%s of %%I', a.pid, a.usename), extract(epoch from now() - a.xact_start)::float8,
    case when a.backend_xid is not null then 'its changes reach no stream table before it commits, and '
        else '' end || 'change buffers and dead rows that are newer stay',
    format('select pg_terminate_backend(%%s)', a.pid)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
    and a.xact_start < now() - make_interval(secs => %(seconds)s)
    and not (a.usesysid = pgtrickle.sidecar_role() and a.application_name like 'pgtrickle%%')
union all
select format('prepared transaction %%L of %%I', p.gid, p.owner), extract(epoch from now() - p.prepared)::float8,
    'its changes reach no stream table before it commits, and it keeps its locks',
    format('commit prepared %%L; or: rollback prepared %%L', p.gid, p.gid)
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < now() - make_interval(secs => %(seconds)s)
order by 2 desc
