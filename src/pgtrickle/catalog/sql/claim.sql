-- claim: hold stream tables until the transaction ends, but those that somebody else holds.
-- Parameter: their ids. The lock does not stop new rows from referring to them.
select pgt_id from pgtrickle.pgt_stream_tables where pgt_id = any (%s::bigint[]) order by pgt_id
for no key update skip locked
