-- 0019_freshness: when a source was written, so that the age of a change is known, and when a sidecar was last seen.

alter table if exists pgtrickle_changes.touched_0
    add column if not exists touched_at timestamptz not null default clock_timestamp();
alter table if exists pgtrickle_changes.touched_1
    add column if not exists touched_at timestamptz not null default clock_timestamp();

-- When a sidecar that has stopped was last seen; those that run are in pgt_sidecars.
create table if not exists pgtrickle.pgt_last_sidecar (
    is_only boolean primary key default true check (is_only),
    seen_at timestamptz not null
);
grant select on pgtrickle.pgt_last_sidecar to public;
