-- claim_waiting: hold stream tables until the transaction ends, waiting for whoever has them now.
-- Parameter: their ids.
select pgt_id from pgtrickle.pgt_stream_tables where pgt_id = any (%s::bigint[]) order by pgt_id
for no key update
