-- ground_rights: the privileges that the sidecar itself needs. rights.sql has those of the owner of a stream
-- table.

-- lost_own_rights: the privileges that the sidecar has lost on the sources of a stream table or on its table, in
-- words.
create or replace function pgtrickle_internal.lost_own_rights(id bigint) returns setof text
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
declare
    sidecar oid := pgtrickle.sidecar_role();
begin
    return query
        select format('%I may not select from %s', pg_get_userbyid(sidecar), pgtrickle_internal.printed(c.oid))
        from pgtrickle.pgt_rights r join pg_class c on c.oid = r.relation_id and c.relkind <> 'v'
        where r.pgt_id = id and not pgtrickle_internal.may_select(sidecar, c.oid, r.columns);
    return query
        select format('row-level security hides rows of %s from %I', pgtrickle_internal.printed(c.oid), pg_get_userbyid(sidecar))
        from pgtrickle.pgt_rights r join pg_class c on c.oid = r.relation_id and c.relrowsecurity
        where r.pgt_id = id and pgtrickle_internal.row_security_applies(c.oid, sidecar);
    return query
        select format('%I may not create triggers on %s', pg_get_userbyid(sidecar), pgtrickle_internal.printed(c.oid))
        from pgtrickle.pgt_ground g join pg_class c on c.oid = g.object_id and c.relkind in ('r', 'p')
        where g.pgt_id = id and g.kind = 'source' and not has_table_privilege(sidecar, c.oid, 'TRIGGER');
    return query
        select distinct format('%I may not use schema %I', pg_get_userbyid(sidecar), n.nspname)
        from pgtrickle.pgt_rights r join pg_class c on c.oid = r.relation_id
        join pg_namespace n on n.oid = c.relnamespace
        where r.pgt_id = id and not has_schema_privilege(sidecar, n.oid, 'USAGE');
    return query
        select format('%I may not execute %s', pg_get_userbyid(sidecar), d.source_name)
        from pgtrickle.pgt_dependencies d join pg_proc p on p.oid = d.source_relid
        where d.pgt_id = id and d.source_type = 'function' and not has_function_privilege(sidecar, p.oid, 'EXECUTE');
    return query
        select format('%I may not write to %s', pg_get_userbyid(sidecar), pgtrickle_internal.printed(c.oid))
        from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = id and not (has_table_privilege(sidecar, c.oid, 'SELECT')
            and has_table_privilege(sidecar, c.oid, 'INSERT') and has_table_privilege(sidecar, c.oid, 'UPDATE')
            and has_table_privilege(sidecar, c.oid, 'DELETE'));
end
$$;
