-- 0024_phases: how long a refresh read, computed and applied. Null in older rows and for failed refreshes.

alter table pgtrickle.pgt_refresh_history
    add column if not exists read_ms double precision,
    add column if not exists compute_ms double precision,
    add column if not exists apply_ms double precision;

grant select (read_ms, compute_ms, apply_ms) on pgtrickle.pgt_refresh_history to public;
