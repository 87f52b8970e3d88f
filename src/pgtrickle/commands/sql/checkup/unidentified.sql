-- unidentified: published tables that refreshes cannot write because they have no replica identity.
-- Every role may run it.
select pgtrickle_internal.printed(u.relation_id) from pgtrickle_internal.unidentified_tables() u order by 1
