-- 0004_control: what makes stream tables wait: slow refreshes, gates, and draining.
-- `recent_ms` has the durations of the latest refreshes that had work, newest first; `behind_since` says
-- since when they take longer than the interval.

alter table pgtrickle.pgt_stream_tables
    add column recent_ms double precision[] not null default '{}',
    add column behind_since timestamptz;

grant select (recent_ms, behind_since) on pgtrickle.pgt_stream_tables to public;

-- Sources whose dependants wait while somebody loads them.
create table pgtrickle.pgt_gates (
    source_relid oid primary key,
    gated_at timestamptz not null default clock_timestamp(),
    gated_by name not null
);

-- At most one row: since when no refresh starts, and who wanted that.
create table pgtrickle.pgt_drain (
    is_draining boolean primary key default true check (is_draining),
    drained_at timestamptz not null default clock_timestamp(),
    drained_by name not null
);

grant select on pgtrickle.pgt_gates, pgtrickle.pgt_drain to public;
