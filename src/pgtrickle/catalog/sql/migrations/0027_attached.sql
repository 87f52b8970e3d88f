-- 0027_attached: tables of other databases as sources. In the database of the stream tables: which databases are
-- attached, and which of their tables are followed. In the database that is read: who follows its tables.

create schema if not exists pgtrickle_attached;
grant usage on schema pgtrickle_attached to public;

-- `reference` names a database in the configuration of the sidecar, which has the credentials. `reader` is the name by
-- which the attached database knows us. `place` is its server as we last saw it. A database that is detached keeps its
-- row until its sidecar has told it so.
create table if not exists pgtrickle.pgt_attached_databases (
    alias text primary key,
    reference text not null,
    reader uuid not null default gen_random_uuid(),
    place text,
    is_detached boolean not null default false,
    last_error text,
    failing_since timestamptz,
    attached_by name not null default current_user,
    attached_at timestamptz not null default clock_timestamp()
);

-- The tables of attached databases. `source_relid` is the table that queries name: a stand-in without rows, or a
-- foreign table. It is null until a sidecar has created the stand-in. `definition` is that of the origin when the
-- stand-in was made. Our copy holds `followed_columns` of the rows at `frontier`, a snapshot of the attached database;
-- null is a copy that has to be compared with the origin.
create table if not exists pgtrickle.pgt_attached_tables (
    table_id bigint generated always as identity primary key,
    alias text not null references pgtrickle.pgt_attached_databases on delete cascade,
    origin_schema name not null,
    origin_name name not null,
    source_relid oid unique,
    is_stand_in boolean not null default true,
    definition jsonb,
    followed_columns name[] not null default '{}',
    frontier pg_snapshot,
    followed_at timestamptz,
    last_error text,
    declared_at timestamptz not null default clock_timestamp()
);
create unique index if not exists pgt_attached_stand_ins on pgtrickle.pgt_attached_tables (alias, origin_schema, origin_name)
    where is_stand_in;

-- The snapshot of each attached database that a stream table shows.
create table if not exists pgtrickle.pgt_attached_frontiers (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    alias text not null references pgtrickle.pgt_attached_databases on delete cascade,
    frontier pg_snapshot not null,
    followed_at timestamptz not null,
    primary key (pgt_id, alias)
);

-- Databases that follow tables of this one. Changes are kept until each of them has passed them. `frontier` is null
-- until a reader has all rows.
create table if not exists pgtrickle.pgt_remote_readers (
    reader uuid not null,
    source_relid oid not null,
    label text not null,
    columns name[] not null,
    frontier pg_snapshot,
    registered_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp(),
    primary key (reader, source_relid)
);
create index if not exists pgt_remote_readers_source on pgtrickle.pgt_remote_readers (source_relid);

-- The process that reads the windows of this database for all databases that follow it, and what it has read.
create table if not exists pgtrickle.pgt_broker (
    is_only boolean primary key default true check (is_only),
    holder uuid not null,
    held_since timestamptz not null default clock_timestamp(),
    renewed_at timestamptz not null default clock_timestamp()
);
create table if not exists pgtrickle.pgt_broker_entries (
    source_relid oid primary key,
    readers bigint not null,
    pending_rows bigint not null,
    last_updated_tick bigint not null,
    updated_at timestamptz not null default clock_timestamp()
);

alter table pgtrickle.pgt_dependencies
    drop constraint if exists pgt_dependencies_source_type_check,
    add constraint pgt_dependencies_source_type_check check (source_type in
        ('table', 'stream_table', 'materialized_view', 'foreign_table', 'attached_table', 'view', 'function'));
