-- 0026_publications: who receives the changes of stream tables: subscribers of publications, and channels that are notified.

-- The replication slots that read a stream table. PostgreSQL does not record which publications a slot is used for, so
-- owners register slots. `is_found` are those that the sidecar saw reading `publication`.
create table if not exists pgtrickle.pgt_subscribers (
    subscriber_id bigint generated always as identity primary key,
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    slot name not null,
    publication name,
    is_found boolean not null default false,
    registered_by name not null,
    registered_at timestamptz not null default clock_timestamp(),
    unique (pgt_id, slot)
);

-- The channels that a refresh notifies if it changed the stream table, and for whom. A name means the same role after a
-- restore, an OID does not.
create table if not exists pgtrickle.pgt_subscriptions (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    channel text not null,
    subscribed_by name not null,
    subscribed_at timestamptz not null default clock_timestamp(),
    primary key (pgt_id, channel)
);

alter table pgtrickle.pgt_episodes drop constraint if exists pgt_episodes_event_check;
alter table pgtrickle.pgt_episodes add constraint pgt_episodes_event_check
    check (event in ('stale_data', 'buffer_growth_warning', 'publication_lag'));

-- Where the log of the server was when a refresh recorded its changes: what a subscriber has confirmed is older.
alter table pgtrickle.pgt_batches add column if not exists recorded_lsn pg_lsn;
alter table pgtrickle.pgt_batches alter column recorded_lsn set default pg_current_wal_insert_lsn();
