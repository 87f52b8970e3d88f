-- claim_waiting: hold stream tables until the transaction ends, waiting for whoever has them now.
-- Parameter: their ids. Also tells the installation, whether refreshes may
-- start at all, and for each the gate and the triggers it waits for.
select pgt_id, (select pgtrickle.installation()), (select pgtrickle_internal.may_begin()),
    case when exists (select from pgtrickle.pgt_gates) then pgtrickle_internal.gate_before(pgt_id) end,
    case when exists (select from pgtrickle.pgt_waiting) then pgtrickle_internal.waits_for_triggers(pgt_id) end
from pgtrickle.pgt_stream_tables where pgt_id = any (%s::bigint[]) order by pgt_id
for no key update
