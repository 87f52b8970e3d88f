-- note_stale: record which stream tables became stale (`begun`) and which are fresh again (`ended`).
-- Returns those whose record changed; `stale_since` is null for those that became stale.
with begun as (
    insert into pgtrickle.pgt_episodes (event, subject)
    select 'stale_data', n from unnest(%(begun)s::bigint[]) n
    on conflict do nothing
    returning subject
), ended as (
    delete from pgtrickle.pgt_episodes e where e.event = 'stale_data' and e.subject = any (%(ended)s::bigint[])
    returning e.subject, e.since
)
select s.pgt_id as id, s.schedule, n.since as stale_since
from (select b.subject, null::timestamptz from begun b union all select e.subject, e.since from ended e) n(subject, since)
join pgtrickle.pgt_stream_tables s on s.pgt_id = n.subject
order by s.pgt_id
