-- claim: lock stream tables until the transaction ends, except those that another session holds.
-- Parameter: their ids. The lock does not stop new rows from referring to them. Also returns the installation,
-- whether refreshes may start at all, and for each table the gate and the triggers that it waits for.
select pgt_id as id, (select pgtrickle_internal.installation()) as installation,
    (select pgtrickle_internal.may_begin()) as may_start,
    case when exists (select from pgtrickle.pgt_gates) then pgtrickle_internal.gate_before(pgt_id) end as gate,
    case when exists (select from pgtrickle.pgt_waiting)
        then pgtrickle_internal.waits_for_triggers(pgt_id) end as triggers
from pgtrickle.pgt_stream_tables where pgt_id = any (%s::bigint[]) order by pgt_id
for no key update skip locked
