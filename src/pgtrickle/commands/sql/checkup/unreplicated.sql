-- unreplicated: sources that receive rows from a subscription while their triggers do not fire for those, each with
-- the reason and the statement for its owner. The sidecar's role may run it.
select pgtrickle_internal.printed(s.source_relid), split_part(u.message, '; their owner has to run: ', 1),
    split_part(u.message, '; their owner has to run: ', 2)
from pgtrickle.pgt_sources s
cross join lateral (select pgtrickle_internal.unreplicated(s.source_relid)) u(message)
where s.trigger_level <> 'none' and u.message is not null and not pgtrickle.is_copy()
order by 1
