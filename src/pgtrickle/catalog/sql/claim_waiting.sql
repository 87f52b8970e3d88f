-- claim_waiting: hold a stream table until the transaction ends, waiting for whoever has it now.
-- Parameter: its id.
select pgt_id from pgtrickle.pgt_stream_tables where pgt_id = %s for no key update
