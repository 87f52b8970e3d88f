-- 0028_wal: capture from the write-ahead log.

-- Until now `auto` meant triggers. So that no source switches by itself, everybody keeps them until asked.
alter table pgtrickle.pgt_stream_tables alter column cdc_mode set default 'trigger';
-- the triggers of an earlier version call functions that are no longer there
alter table pgtrickle.pgt_stream_tables disable trigger user;
update pgtrickle.pgt_stream_tables set cdc_mode = 'trigger' where cdc_mode = 'auto';
alter table pgtrickle.pgt_stream_tables enable trigger user;

-- How the changes of a source are captured. The log is used for transactions that commit from `wal_from` on and before
-- `wal_until`; triggers capture all others. `wal_publication` identifies how the source was published at `wal_from`.
-- `wal_retry_at` is when the next attempt to change the way of capture is due, `wal_note` what the last one ran into.
alter table pgtrickle.pgt_sources
    add column if not exists capture text not null default 'trigger' check (capture in ('trigger', 'wal')),
    add column if not exists wal_from pg_lsn,
    add column if not exists wal_until pg_lsn,
    add column if not exists wal_publication text,
    add column if not exists wal_attempts integer not null default 0,
    add column if not exists wal_retry_at timestamptz,
    add column if not exists wal_note text;
create index if not exists pgt_sources_wal on pgtrickle.pgt_sources (source_relid) where capture = 'wal';

-- The replication slot of this database, and the publication that existed before it. Every transaction that committed before `decoded_lsn` is in the buffers.
create table if not exists pgtrickle.pgt_wal (
    is_only boolean primary key default true check (is_only),
    slot name not null,
    publication oid not null,
    decoded_lsn pg_lsn not null,
    created_at timestamptz not null default clock_timestamp()
);

-- Which transactions were decoded lately, and by which one of ours: polls notice them by the latter.
create table if not exists pgtrickle.pgt_decoded (
    decoded_by xid8 not null default pg_current_xact_id(),
    source_relid oid not null,
    xid xid8 not null,
    decoded_at timestamptz not null default clock_timestamp(),
    primary key (decoded_by, source_relid, xid)
);
grant select on pgtrickle.pgt_wal to public;
