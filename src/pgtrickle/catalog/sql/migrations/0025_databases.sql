-- 0025_databases: a database can be disabled, so that no sidecar serves it. The row that a drain leaves now says which of
-- the two was asked for, perhaps both.

alter table pgtrickle.pgt_drain
    add column if not exists is_drained boolean not null default true,
    add column if not exists is_disabled boolean not null default false;
