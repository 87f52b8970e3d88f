-- note_buffers: record whose change buffers grew past `limit` bytes, and whose shrank below half of it.
-- Returns those whose record changed, with the stream tables that have read least of them; `large_since` is null for
-- those that grew.
with sizes as materialized (
    select s.source_relid, e.since,
        coalesce(pg_relation_size(to_regclass(format('pgtrickle_changes.changes_%%s_0', s.source_relid))), 0)
            + coalesce(pg_relation_size(to_regclass(format('pgtrickle_changes.changes_%%s_1', s.source_relid))), 0) as bytes
    from pgtrickle.pgt_sources s
    left join pgtrickle.pgt_episodes e on e.event = 'buffer_growth_warning' and e.subject = s.source_relid::bigint
), begun as (
    insert into pgtrickle.pgt_episodes (event, subject)
    select 'buffer_growth_warning', z.source_relid::bigint from sizes z where z.since is null and z.bytes > %(limit)s
    on conflict do nothing
    returning subject
), ended as (
    delete from pgtrickle.pgt_episodes e using sizes z
    where e.event = 'buffer_growth_warning' and e.subject = z.source_relid::bigint and z.bytes <= %(limit)s / 2
    returning e.subject, e.since
)
select coalesce(pgtrickle_internal.printed(z.source_relid), 'a dropped table') as source, z.bytes, n.since as large_since,
    array(
        select pgtrickle_internal.shown_name(t.pgt_id) from pgtrickle.pgt_dependencies d
        join pgtrickle.pgt_stream_tables t on t.pgt_id = d.pgt_id
        where d.source_relid = z.source_relid and d.source_type not in ('view', 'function')
        order by pg_snapshot_xmin(coalesce(case d.source_type when 'stream_table' then t.upstream_frontier end, t.frontier)) nulls first
        limit 5) as slowest
from (select b.subject, null::timestamptz from begun b union all select e.subject, e.since from ended e) n(subject, since)
join sizes z on z.source_relid::bigint = n.subject
order by z.source_relid
