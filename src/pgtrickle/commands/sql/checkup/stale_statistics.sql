-- stale_statistics: the sources, and the parts of them, without statistics or with old ones, and whether they never
-- had any. Small tables do not count. Every role may run it.
select pgtrickle_internal.printed(c.oid), c.reltuples < 0
from (
    select distinct t.id from pgtrickle.pgt_sources s cross join lateral pgtrickle_internal.tree_of(s.source_relid) t(id)
) t
join pg_class c on c.oid = t.id and c.relkind in ('r', 'm')
join pg_stat_all_tables a on a.relid = c.oid
where not pgtrickle.is_copy() and pg_relation_size(c.oid) >= 1048576
    and (c.reltuples < 0 or a.n_mod_since_analyze > greatest(10000, c.reltuples / 2))
order by 1
