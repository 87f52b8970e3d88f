-- late_subscribers: subscribers that are late, have lost their place in the log, or have no slot any more.
-- Every role may run it.
select s.stream_table, s.slot, s.slot_state, s.lag_bytes from pgtrickle.publication_status s
where s.slot is not null and (s.is_late or s.slot_state in ('lost', 'missing'))
order by 1, 2
