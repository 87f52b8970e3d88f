-- check_before_write: what speaks against writing to stream tables, a row for each, in the given order.
-- Parameters: relations (oids), ids and names (quoted) of the stream tables.
-- Reads: the catalogs of PostgreSQL, pgt_stream_tables, pgt_dependencies, pgt_rights.  The caller has locked the tables.
with given as (
    select * from unnest(%(relations)s::oid[], %(ids)s::bigint[], %(names)s::text[])
        with ordinality as t(relation_id, pgt_id, name, position)
),
attached as materialized (
    select u.relation_id, string_agg(u.code, '; ') as code
    from pgtrickle_internal.untrusted_code(%(relations)s::oid[]) u group by u.relation_id
),
reading as materialized (
    select u.pgt_id, string_agg(u.code, '; ') as code
    from pgtrickle_internal.untrusted_reads(%(ids)s::bigint[]) u group by u.pgt_id
)
select a.code,
    (select string_agg(l.lost, '; ') from pgtrickle_internal.lost_rights(g.pgt_id) l(lost)) as lost,
    r.code as read_code,
    to_regclass(g.name) = g.relation_id as is_itself,
    row_security_active(g.relation_id) as hides_rows,
    current_user as role
from given g
left join attached a on a.relation_id = g.relation_id
left join reading r on r.pgt_id = g.pgt_id
order by g.position
