-- note_publication_lag: record which subscribers fell behind by more than `limit` bytes of log or lost their place in it, and
-- which have caught up to less than half of it or are gone.
-- Returns those whose record changed; `late_since` is null for those that fell behind.
with progress as materialized (
    select g.*, e.since, g.slot_state = 'lost' or g.slot_state <> 'missing' and coalesce(g.lag_bytes, 0) > %(limit)s as is_late
    from pgtrickle_internal.subscriber_progress g
    left join pgtrickle.pgt_episodes e on e.event = 'publication_lag' and e.subject = g.subscriber_id
), begun as (
    insert into pgtrickle.pgt_episodes (event, subject)
    select 'publication_lag', p.subscriber_id from progress p where p.since is null and p.is_late
    on conflict do nothing
    returning subject
), ended as (
    delete from pgtrickle.pgt_episodes e using progress p
    where e.event = 'publication_lag' and e.subject = p.subscriber_id and p.slot_state <> 'lost'
        and (p.slot_state = 'missing' or p.lag_bytes <= %(limit)s / 2)
    returning e.subject, e.since
)
select p.pgt_id as id, s.pgt_schema as schema, s.pgt_name as name, p.slot, p.slot_state, p.lag_bytes, n.since as late_since
from (select b.subject, null::timestamptz from begun b union all select e.subject, e.since from ended e) n(subject, since)
join progress p on p.subscriber_id = n.subject
join pgtrickle.pgt_stream_tables s on s.pgt_id = p.pgt_id
order by p.subscriber_id
