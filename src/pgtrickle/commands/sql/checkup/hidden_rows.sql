-- hidden_rows: stream tables that row-level security stops, with the reason. The sidecar's role may run it.
select pgtrickle_internal.shown_name(s.pgt_id), l.lost
from pgtrickle.pgt_stream_tables s
cross join lateral (
    select * from pgtrickle_internal.lost_rights(s.pgt_id)
    union
    select * from pgtrickle_internal.lost_own_rights(s.pgt_id)
) l(lost)
where l.lost like 'row-level security%' and not pgtrickle.is_copy()
order by 1, 2
