-- publications: the publications of stream tables and how far each subscriber is.
-- Every role may run it.
select s.stream_table, s.publication, s.slot, s.confirmed_flush_lsn::text, s.lag_bytes, s.active, s.slot_state, s.is_late, s.since
from pgtrickle.publication_status s
order by s.stream_table, s.publication, s.slot
