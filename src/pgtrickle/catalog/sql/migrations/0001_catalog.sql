-- 0001_catalog: the schemas and tables of the catalog.
-- Run once, by the role that owns everything of pgtrickle from then on (the sidecar's role).
-- Errors of refreshes may quote data, so the columns that hold them are not for everybody.

create schema pgtrickle;
create schema pgtrickle_changes;
create schema pgtrickle_state;
revoke all on schema pgtrickle_changes, pgtrickle_state from public;
grant usage on schema pgtrickle to public;

create table pgtrickle.pgt_schema_version (
    version integer primary key,
    applied_at timestamptz not null default now()
);

-- One row for each change of a definition; their sum tells whether anything changed.
-- A single counter would make everybody who defines something wait for everybody else.
create table pgtrickle.pgt_generation (
    id bigint generated always as identity primary key
);

create table pgtrickle.pgt_stream_tables (
    pgt_id bigint generated always as identity primary key,
    pgt_relid oid not null unique,
    pgt_schema name not null,
    pgt_name name not null,
    pgt_owner oid not null,
    defining_query text not null,
    schedule text,
    refresh_mode text not null,
    effective_refresh_mode text,
    downgrade_reason text,
    status text not null default 'INITIALIZING',
    is_populated boolean not null default false,
    data_timestamp timestamptz,
    frontier pg_snapshot,
    upstream_frontier pg_snapshot,
    last_refresh_at timestamptz,
    consecutive_errors integer not null default 0,
    last_error text,
    retry_at timestamptz,
    needs_reinit boolean not null default false,
    reinit_reason text,
    initialize boolean not null default true,
    settings jsonb not null,
    match_columns text[] not null,
    pooler_compatibility_mode boolean not null default false,
    refresh_tier text not null default 'hot',
    diamond_consistency text,
    diamond_schedule_policy text,
    cdc_mode text not null default 'auto',
    append_only boolean not null default false,
    created_at timestamptz not null default now(),
    check (refresh_mode in ('AUTO', 'DIFFERENTIAL', 'FULL')),
    check (effective_refresh_mode in ('DIFFERENTIAL', 'FULL')),
    check (status in ('INITIALIZING', 'ACTIVE', 'SUSPENDED', 'ERROR')),
    check (refresh_tier in ('hot', 'warm', 'cold', 'frozen')),
    check (cdc_mode in ('auto', 'trigger', 'wal'))
) with (fillfactor = 70);

create table pgtrickle.pgt_dependencies (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    source_type text not null,
    source_relid oid not null,
    source_schema name not null,
    source_name text not null,
    columns_used text[] not null default '{}',
    schema_fingerprint text not null,
    cdc_mode text,
    primary key (pgt_id, source_type, source_relid),
    check (source_type in ('table', 'stream_table', 'view', 'function'))
);
create index on pgtrickle.pgt_dependencies (source_relid);

create table pgtrickle.pgt_sources (
    source_relid oid primary key,
    columns_captured smallint[] not null default '{}',
    shape text,
    trigger_level text not null check (trigger_level in ('statement', 'row')),
    is_always boolean not null default false,
    active_buffer smallint not null default 0 check (active_buffer in (0, 1)),
    retired_at pg_snapshot,
    captured_since timestamptz not null default now()
);

create table pgtrickle.pgt_refresh_history (
    refresh_id bigint generated always as identity primary key,
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    data_timestamp timestamptz,
    start_time timestamptz not null,
    end_time timestamptz not null,
    action text not null,
    status text not null,
    rows_inserted bigint not null default 0,
    rows_deleted bigint not null default 0,
    delta_row_count bigint,
    duration_ms double precision not null,
    reason text,
    error_message text,
    initiated_by text not null,
    check (action in ('NO_DATA', 'FULL', 'DIFFERENTIAL', 'REINITIALIZE', 'SKIP')),
    check (status in ('RUNNING', 'COMPLETED', 'FAILED', 'SKIPPED'))
);
create index on pgtrickle.pgt_refresh_history (pgt_id, refresh_id desc);

create table pgtrickle.pgt_refresh_requests (
    request_id bigint generated always as identity primary key,
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    requested_in xid8 not null default pg_current_xact_id(),
    requested_at timestamptz not null default clock_timestamp(),
    answered_at timestamptz,
    error_message text
);
create index on pgtrickle.pgt_refresh_requests (pgt_id) where answered_at is null;

grant select on pgtrickle.pgt_schema_version, pgtrickle.pgt_generation,
    pgtrickle.pgt_dependencies, pgtrickle.pgt_sources to public;
grant select (pgt_id, pgt_relid, pgt_schema, pgt_name, pgt_owner, defining_query, schedule, refresh_mode,
    effective_refresh_mode, downgrade_reason, status, is_populated, data_timestamp, frontier,
    upstream_frontier, last_refresh_at, consecutive_errors, retry_at, needs_reinit, initialize, settings,
    match_columns, pooler_compatibility_mode, refresh_tier, diamond_consistency, diamond_schedule_policy,
    cdc_mode, append_only, created_at)
    on pgtrickle.pgt_stream_tables to public;
grant select (refresh_id, pgt_id, data_timestamp, start_time, end_time, action, status, rows_inserted,
    rows_deleted, delta_row_count, duration_ms, reason, initiated_by)
    on pgtrickle.pgt_refresh_history to public;
grant select (request_id, pgt_id, requested_in, requested_at, answered_at)
    on pgtrickle.pgt_refresh_requests to public;
