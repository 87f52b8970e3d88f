-- large_readers: differential stream tables that read a source of at least `rows` rows, those over the largest first,
-- each with these sources. Every role may run it.
select s.pgt_id, pgtrickle_internal.shown_name(s.pgt_id),
    array_agg(pgtrickle_internal.printed(c.oid) order by c.oid)
from pgtrickle.pgt_stream_tables s
join pgtrickle.pgt_dependencies d on d.pgt_id = s.pgt_id and d.source_type not in ('view', 'function')
join pg_class c on c.oid = d.source_relid
cross join lateral (
    -- a table that was never analyzed counts by its pages
    select sum(case when p.reltuples >= 0 and p.relpages > 0 then p.reltuples
        else pg_relation_size(p.oid) / 100.0 end) as estimate
    from pgtrickle_internal.tree_of(c.oid) t(id) join pg_class p on p.oid = t.id
) n
where s.effective_refresh_mode = 'DIFFERENTIAL' and n.estimate >= %(rows)s and not pgtrickle.is_copy()
group by s.pgt_id
order by max(n.estimate) desc, s.pgt_id
