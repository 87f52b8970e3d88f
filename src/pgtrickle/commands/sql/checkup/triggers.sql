-- triggers: capture triggers that are missing or off, with the statement that enables one, and whether a role can
-- create it again by a repair. Every role may run it.
select t.table_name, t.trigger_name, t.event, t.is_present,
    format('alter table %s enable trigger %I', t.table_name, t.trigger_name),
    (select min(pgtrickle_internal.shown_name(d.pgt_id)) from pgtrickle.pgt_dependencies d
        where d.source_relid = t.source_oid and d.source_type not in ('view', 'function'))
from pgtrickle.trigger_inventory() t
where not (t.is_present and t.is_enabled)
order by 1, 2
