-- trust: a refresh writes to a table that belongs to somebody else, as the sidecar's role.
-- Code that its owner has attached to it would run with the rights of that role.

-- untrusted_code: triggers, checks, indexes and generated columns of a table that call functions of
-- somebody who may not act as the sidecar. A trigger that runs as its own owner is harmless to us.
create or replace function pgtrickle.untrusted_code(relation_id oid) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('trigger %I calls %s', t.tgname, p.oid::regprocedure)
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = relation_id and not t.tgisinternal and t.tgenabled <> 'D' and p.oid >= 16384
        and not p.prosecdef and not pgtrickle.is_trusted(p.proowner)
    union
    select format('%s calls %s', pg_describe_object(d.classid, d.objid, 0), p.oid::regprocedure)
    from pg_depend d join pg_proc p on p.oid = d.refobjid
    where d.refclassid = 'pg_proc'::regclass and p.oid >= 16384 and not pgtrickle.is_trusted(p.proowner)
        and ((d.classid = 'pg_constraint'::regclass
                and d.objid in (select oid from pg_constraint where conrelid = relation_id))
            or (d.classid = 'pg_attrdef'::regclass
                and d.objid in (select oid from pg_attrdef where adrelid = relation_id))
            or (d.classid = 'pg_class'::regclass
                and d.objid in (select indexrelid from pg_index where indrelid = relation_id))
            or (d.classid = 'pg_policy'::regclass
                and d.objid in (select oid from pg_policy where polrelid = relation_id)))
$$;
