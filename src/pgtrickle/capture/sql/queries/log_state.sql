-- log_state: the end of the log that can be decoded, when that was, and the state of our slot. It runs in another
-- database, where nothing of ours is installed. A promoted standby has another timeline than before.
-- Parameter: slot.  Locks: nothing.
select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end::text, clock_timestamp(),
    pg_is_in_recovery(), concat_ws('/', c.system_identifier, (select d.oid from pg_database d where d.datname = current_database()),
        case when pg_is_in_recovery() then 'standby' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end),
    s.slot_name::text, s.wal_status, s.confirmed_flush_lsn::text,
    s.plugin = 'pgoutput' and s.database = current_database() and (to_jsonb(s) ->> 'conflicting')::boolean is not true
        and to_jsonb(s) ->> 'invalidation_reason' is null,
    pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end,
        s.restart_lsn)::bigint
from pg_control_system() c left join pg_replication_slots s on s.slot_name = %(slot)s
