-- 0015_counters: how far the server has counted transactions, so that a counter that was set back is noticed.

alter table pgtrickle.pgt_identity add column seen_xid xid8;
