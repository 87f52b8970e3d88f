-- missing_rights: the privileges that the sidecar's role and the owners of stream tables and views lack, each as a
-- GRANT, with how many stream tables need it and the name of one. The sidecar's role may run it.
with sidecar as (
    select pgtrickle.sidecar_role() as id
), reads as (
    select s.pgt_id, case r.through when 0 then t.relowner else v.relowner end as reader_id, r.relation_id, r.columns,
        c.relkind as kind, c.relnamespace as namespace
    from pgtrickle.pgt_stream_tables s
    join pg_class t on t.oid = s.pgt_relid
    join pgtrickle.pgt_rights r on r.pgt_id = s.pgt_id
    join pg_class c on c.oid = r.relation_id
    left join pg_class v on v.oid = r.through
), needed(pgt_id, role_id, what) as (
    select r.pgt_id, r.reader_id, format('select on %s', pgtrickle_internal.printed(r.relation_id))
    from reads r where not pgtrickle_internal.may_select(r.reader_id, r.relation_id, r.columns)
    union
    select r.pgt_id, k.id, format('select on %s', pgtrickle_internal.printed(r.relation_id))
    from reads r cross join sidecar k
    where r.kind <> 'v' and not pgtrickle_internal.may_select(k.id, r.relation_id, r.columns)
    union
    select r.pgt_id, u.id, format('usage on schema %I', n.nspname)
    from reads r join pg_namespace n on n.oid = r.namespace
    cross join lateral (select r.reader_id union select k.id from sidecar k) u(id)
    where not has_schema_privilege(u.id, n.oid, 'USAGE')
    union
    select r.pgt_id, k.id, format('trigger on %s', pgtrickle_internal.printed(t.id))
    from reads r cross join sidecar k cross join lateral pgtrickle_internal.tree_of(r.relation_id) t(id)
    where r.kind in ('r', 'p') and not has_table_privilege(k.id, t.id, 'TRIGGER')
    union
    select d.pgt_id, u.id, format('execute on function %s', p.oid::regprocedure)
    from pgtrickle.pgt_dependencies d
    join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
    join pg_class t on t.oid = s.pgt_relid
    join pg_proc p on p.oid = d.source_relid
    cross join lateral (select t.relowner union select k.id from sidecar k) u(id)
    where d.source_type = 'function' and not has_function_privilege(u.id, p.oid, 'EXECUTE')
    union
    select s.pgt_id, k.id, format('select, insert, update, delete on %s', pgtrickle_internal.printed(s.pgt_relid))
    from pgtrickle.pgt_stream_tables s join pg_class t on t.oid = s.pgt_relid cross join sidecar k
    where not (has_table_privilege(k.id, t.oid, 'SELECT') and has_table_privilege(k.id, t.oid, 'INSERT')
        and has_table_privilege(k.id, t.oid, 'UPDATE') and has_table_privilege(k.id, t.oid, 'DELETE'))
    union
    select null, k.id, format('temporary on database %I', d.datname)
    from sidecar k join pg_database d on d.datname = current_database()
    where not has_database_privilege(k.id, d.oid, 'TEMPORARY')
)
select format('grant %s to %I', n.what, pg_get_userbyid(n.role_id)), pg_get_userbyid(n.role_id),
    count(n.pgt_id), min(pgtrickle_internal.shown_name(n.pgt_id))
from needed n where not pgtrickle.is_copy()
group by n.what, n.role_id order by 1
