-- 0029_wal_reader: how the sidecar reads the replication slot, and why not through a replication connection.
alter table pgtrickle.pgt_wal
    add column if not exists reader text check (reader in ('stream', 'sql')),
    add column if not exists reader_note text;
