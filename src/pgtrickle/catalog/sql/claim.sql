-- claim: hold a stream table until the transaction ends, unless somebody else does.
-- Parameter: its id. The lock does not stop new rows from referring to it.
select pgt_id from pgtrickle.pgt_stream_tables where pgt_id = %s for no key update skip locked
