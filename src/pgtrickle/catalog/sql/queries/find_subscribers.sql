-- find_subscribers: record the slots that read publications of stream tables now, as far as pg_stat_activity shows this role
-- the command of their connections, and forget found ones whose slots are gone. Slots of a first copy soon end.
-- Reads: pg_replication_slots, pg_stat_activity.  Writes: pgtrickle.pgt_subscribers.
with gone as (
    delete from pgtrickle.pgt_subscribers s
    where s.is_found and not exists (select from pg_replication_slots r
        where r.slot_name = s.slot and r.slot_type = 'logical' and r.database = current_database())
)
insert into pgtrickle.pgt_subscribers (pgt_id, slot, publication, is_found)
select distinct on (s.pgt_id, r.slot_name) s.pgt_id, r.slot_name, p.publication, true
from pg_replication_slots r
join pg_stat_activity a on a.pid = r.active_pid and a.backend_type = 'walsender'
join pgtrickle_internal.published_tables p
    -- the command quotes names as identifiers, inside a string
    on strpos(a.query, format('"%%s"', replace(replace(p.publication, '"', '""'), '''', ''''''))) > 0
join pgtrickle.pgt_stream_tables s on s.pgt_relid = p.relation_id
where r.slot_type = 'logical' and r.database = current_database() and not r.temporary
    and r.slot_name !~ '^pg_\d+_sync_\d+_\d+$' and strpos(a.query, 'publication_names') > 0
order by s.pgt_id, r.slot_name, p.publication
on conflict do nothing
