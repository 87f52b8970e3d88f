-- claim: hold a stream table until the transaction ends, unless somebody else does.
-- Parameter: its id. The lock does not stop new rows from referring to it. Also tells whether refreshes may
-- start at all, and the gate it waits for.
select pgt_id, pgtrickle.may_start(), pgtrickle.gate_before(pgt_id)
from pgtrickle.pgt_stream_tables where pgt_id = %s for no key update skip locked
