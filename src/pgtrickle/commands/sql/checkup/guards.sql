-- guards: stream tables whose guard is missing or off, so that anybody with the privilege could write to them.
-- Every role may run it.
select pgtrickle_internal.shown_name(s.pgt_id)
from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
where not pgtrickle.is_copy() and not exists (
    select from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace
    where t.tgrelid = c.oid and t.tgname = 'pgtrickle_guard' and t.tgenabled <> 'D'
        and n.nspname = 'pgtrickle' and p.proname = 'refuse_direct_write')
order by 1
