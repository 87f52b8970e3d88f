-- 0003_control: how long refreshes take, and whether somebody was told that it is too long.
-- `recent_ms` has the latest refreshes that had work, newest first.

alter table pgtrickle.pgt_stream_tables
    add column recent_ms double precision[] not null default '{}',
    add column behind_since timestamptz;

grant select (recent_ms, behind_since) on pgtrickle.pgt_stream_tables to public;
