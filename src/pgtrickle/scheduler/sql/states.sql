-- states: what a tick needs to know of every stream table.
-- Reads: pgtrickle.pgt_stream_tables.  Locks: nothing.
select pgt_id, status, is_populated, last_refresh_at, retry_at, needs_reinit, initialize, follows_clock
from pgtrickle.pgt_stream_tables
order by pgt_id
