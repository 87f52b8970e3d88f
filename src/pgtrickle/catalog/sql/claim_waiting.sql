-- claim_waiting: hold a stream table until the transaction ends, waiting for whoever has it now.
-- Parameter: its id. Also tells whether refreshes may start at all, and the gate it waits for.
select pgt_id, pgtrickle.may_start(), pgtrickle.gate_before(pgt_id)
from pgtrickle.pgt_stream_tables where pgt_id = %s for no key update
