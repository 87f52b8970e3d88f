-- claim_waiting: lock stream tables until the transaction ends, and wait for the sessions that hold them now.
-- Parameter: their ids. Returns the same columns as claim.sql.
select pgt_id as id, (select pgtrickle_internal.installation()) as installation,
    (select pgtrickle_internal.may_begin()) as may_start,
    case when exists (select from pgtrickle.pgt_gates) then pgtrickle_internal.gate_before(pgt_id) end as gate,
    case when exists (select from pgtrickle.pgt_waiting)
        then pgtrickle_internal.waits_for_triggers(pgt_id) end as triggers
from pgtrickle.pgt_stream_tables where pgt_id = any (%s::bigint[]) order by pgt_id
for no key update
