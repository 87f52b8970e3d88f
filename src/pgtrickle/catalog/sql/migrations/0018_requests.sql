-- 0018_requests: requests can ask for a comparison too, and their answers say what was done.
-- `seconds` is how long a comparison may take; null is no limit. `taken_by` is the sidecar that compares. `answer` is the result, or the error with its code
-- and hint. Both may quote data, so no column here is granted to others: they read them through own_requests.

alter table pgtrickle.pgt_refresh_requests
    add column if not exists kind text not null default 'refresh'
        constraint pgt_refresh_requests_kind_check check (kind in ('refresh', 'verify')),
    add column if not exists seconds double precision
        constraint pgt_refresh_requests_seconds_check check (seconds > 0 and seconds <= 315576000),
    add column if not exists taken_by uuid,
    add column if not exists answer jsonb;

-- When a sidecar that has stopped was last seen; those that run are in pgt_sidecars.
create table if not exists pgtrickle.pgt_last_sidecar (
    is_only boolean primary key default true check (is_only),
    seen_at timestamptz not null
);
grant select on pgtrickle.pgt_last_sidecar to public;
