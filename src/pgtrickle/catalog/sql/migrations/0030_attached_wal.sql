-- 0030_attached_wal: tables of other databases that are followed by decoding the log, with nothing installed there.

-- How the tables of a database are captured. With `wal`, `position` is where decoding has come to: every transaction whose
-- commit is before it in the log of that server is in the copies, and no other.
alter table pgtrickle.pgt_attached_databases
    add column if not exists cdc_mode text not null default 'trigger' check (cdc_mode in ('trigger', 'wal')),
    add column if not exists position pg_lsn;
-- A copy shows the rows at `frontier` or, with `wal`, at `position`. Both are null if it has to be compared.
alter table pgtrickle.pgt_attached_tables add column if not exists position pg_lsn;
alter table pgtrickle.pgt_attached_frontiers
    add column if not exists position pg_lsn,
    alter column frontier drop not null;
