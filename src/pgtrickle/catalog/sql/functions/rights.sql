-- rights: a stream table shows what its owner may read, so it is refreshed only as long as the owner has these
-- privileges.

-- needed_rights: what a query reads, and as which role: the owner of the stream table (0), or the owner of a view.
-- A view with security_invoker reads as its reader.
create or replace function pgtrickle_internal.needed_rights(query_view oid)
returns table (through oid, relation_id oid, columns smallint[])
language sql stable rows 5 set search_path = pg_catalog, pg_temp
as $$
    with recursive reached(view_id, through) as (
        select query_view, 0::oid
        union
        select c.oid, case when pgtrickle_internal.is_invoker(c.reloptions)
            then r.through else c.oid end
        from reached r
        join pg_rewrite w on w.ev_class = r.view_id
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        join pg_class c on c.oid = d.refobjid and c.relkind = 'v'
    ),
    rules as (
        select r.view_id, r.through, w.oid as rule_id, w.ev_action::text as action
        from reached r join pg_rewrite w on w.ev_class = r.view_id and w.rulename = '_RETURN'
    ),
    named as (
        select r.through, d.refobjid as relation_id, d.refobjsubid::smallint as number
        from rules r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        union
        select r.through, found[1]::oid, 0::smallint
        from rules r, regexp_matches(r.action, ':relid ([0-9]+)', 'g') found
        where found[1]::oid not in (0, r.view_id)
        union
        -- a whole row counts as all of its columns; the rule does not say of which relation
        select r.through, d.refobjid, a.attnum
        from rules r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.rule_id
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.view_id
        join pg_attribute a on a.attrelid = d.refobjid and a.attnum > 0 and not a.attisdropped
        where r.action ~ '[{]VAR :varno [0-9]+ :varattno 0 '
    )
    select n.through, n.relation_id,
        coalesce(array_agg(n.number order by n.number) filter (where n.number <> 0), '{}')
    from named n join pg_class c on c.oid = n.relation_id and c.relkind <> 'c'
    group by n.through, n.relation_id
$$;

-- note_rights: record what the query of a stream table reads, as which role, and whose code it may run.
create or replace function pgtrickle_internal.note_rights(id bigint, query_view oid) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    delete from pgtrickle.pgt_rights r where r.pgt_id = id;
    insert into pgtrickle.pgt_rights (pgt_id, through, relation_id, columns)
    select id, n.through, n.relation_id, n.columns from pgtrickle_internal.needed_rights(query_view) n;
    update pgtrickle.pgt_stream_tables s set reached_classes = o.classids, reached_objects = o.objids
    from (select coalesce(array_agg(r.classid), '{}') as classids, coalesce(array_agg(r.objid), '{}') as objids
        from pgtrickle_internal.reached_objects(query_view, 0) r where r.classid <> 'pg_class'::regclass) o
    where s.pgt_id = id;
$$;

-- note_missing_rights: the same for stream tables of a version that did not record it. If a query can no longer be
-- read, its next refresh refuses it anyway.
create or replace function pgtrickle_internal.note_missing_rights() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    table_id bigint;
    query_view oid;
begin
    for table_id in
        select s.pgt_id from pgtrickle.pgt_stream_tables s
        where not exists (select from pgtrickle.pgt_rights r where r.pgt_id = s.pgt_id) order by 1
    loop
        begin
            query_view := pgtrickle_internal.view_of_stored(table_id);
            perform pgtrickle_internal.note_rights(table_id, query_view);
            perform pgtrickle_internal.drop_view(query_view);
        exception when others then
            raise notice 'the query of stream table % cannot be analysed: %', table_id, sqlerrm;
        end;
    end loop;
end
$$;

-- lost_rights: the privileges that the owner of a stream table, or of a view below it, has lost, in words. Every
-- refresh calls this; it takes a few cache lookups for each relation.
create or replace function pgtrickle_internal.lost_rights(id bigint) returns setof text
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        select format('%I may not select from %s', pg_get_userbyid(a.role_id), pgtrickle_internal.printed(c.oid))
        from pgtrickle.pgt_stream_tables s
        join pg_class t on t.oid = s.pgt_relid
        join pgtrickle.pgt_rights r on r.pgt_id = s.pgt_id
        join pg_class c on c.oid = r.relation_id
        left join pg_class v on v.oid = r.through
        cross join lateral (select case r.through when 0 then t.relowner else v.relowner end) a(role_id)
        where s.pgt_id = id and not has_table_privilege(a.role_id, c.oid, 'SELECT')
            and not pgtrickle_internal.may_select(a.role_id, c.oid, r.columns);
    return query
        select format('%I may not use schema %I', pg_get_userbyid(t.relowner), n.nspname)
        from pgtrickle.pgt_stream_tables s
        join pg_class t on t.oid = s.pgt_relid
        join pgtrickle.pgt_rights r on r.pgt_id = s.pgt_id and r.through = 0
        join pg_class c on c.oid = r.relation_id
        join pg_namespace n on n.oid = c.relnamespace
        where s.pgt_id = id and not has_schema_privilege(t.relowner, n.oid, 'USAGE');
    return query
        select format('%I may not execute %s', pg_get_userbyid(t.relowner), d.source_name)
        from pgtrickle.pgt_stream_tables s
        join pg_class t on t.oid = s.pgt_relid
        join pgtrickle.pgt_dependencies d on d.pgt_id = s.pgt_id and d.source_type = 'function'
        where s.pgt_id = id and not has_function_privilege(t.relowner, d.source_relid, 'EXECUTE');
    return query
        select format('row-level security hides rows of %s from %I', pgtrickle_internal.printed(c.oid), pg_get_userbyid(u.role_id))
        from pgtrickle.pgt_stream_tables s
        join pg_class t on t.oid = s.pgt_relid
        join pgtrickle.pgt_rights r on r.pgt_id = s.pgt_id
        join pg_class c on c.oid = r.relation_id and c.relrowsecurity
        left join pg_class v on v.oid = r.through
        cross join lateral (values (t.relowner), (v.relowner)) u(role_id)
        where s.pgt_id = id and pgtrickle_internal.row_security_applies(c.oid, u.role_id);
end
$$;

-- check_rights: refuse a stream table whose owner has lost a right that its query needs.
create or replace function pgtrickle_internal.check_rights(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    lost text := (select string_agg(l, '; ') from pgtrickle_internal.lost_rights(id) l);
begin
    if lost is not null then
        raise exception '%', format('%s is not refreshed: %s', (select pgtrickle_internal.printed(s.pgt_relid)
                from pgtrickle.pgt_stream_tables s where s.pgt_id = id), lost) using
            errcode = 'TA001',
            hint = 'Grant the right again and run select pgtrickle.resume_stream_table(name), or drop the stream table.';
    end if;
end
$$;
