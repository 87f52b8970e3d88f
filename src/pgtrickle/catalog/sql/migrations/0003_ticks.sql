-- 0003_ticks: what a tick asks, so that it need not look at every buffer and every stream table.
-- A tick remembers the snapshot of the one before; what a later one sees and that one did not is new.

-- Which sources were written in which transaction. Writers choose a side by the clock, and a side is
-- emptied when everybody has seen it.
create table pgtrickle_changes.touched_0 (
    xid xid8 not null default pg_current_xact_id(),
    source oid not null
);
create index on pgtrickle_changes.touched_0 (xid);
create table pgtrickle_changes.touched_1 (like pgtrickle_changes.touched_0 including all);

-- Which stream table was defined otherwise in which transaction; null means any of them.
alter table pgtrickle.pgt_generation
    add column pgt_id bigint,
    add column xid xid8 not null default pg_current_xact_id(),
    add column noted_at timestamptz not null default now();
create index on pgtrickle.pgt_generation (xid);

-- The sidecars of this database, as they last told of themselves.
create table pgtrickle.pgt_sidecars (
    sidecar_id uuid primary key,
    host text not null,
    process integer not null,
    version text not null,
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    workers integer not null,
    busy integer not null default 0,
    queued integer not null default 0,
    vitals jsonb not null default '{}'
) with (fillfactor = 50);
grant select on pgtrickle.pgt_sidecars to public;
