-- carried: what is attached to a relation, and what becomes of each part when a table takes the place of the relation.
-- Everything here reads the catalogs of PostgreSQL and runs as the caller.

-- shape_of: name, type with its modifier, and collation of each column of a relation, in order.
create or replace function pgtrickle_internal.shape_of(relation_id oid) returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
        case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation::text end)
        order by a.attnum), '{}')
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped
$$;

-- kept_columns: the columns that two relations have in common: the same name, type, modifier and collation.
create or replace function pgtrickle_internal.kept_columns(old oid, replacement oid) returns name[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(o.attname order by o.attnum), '{}')
    from pg_attribute o join pg_attribute r on r.attrelid = replacement and r.attname = o.attname
        and (r.atttypid, r.atttypmod, r.attcollation) = (o.atttypid, o.atttypmod, o.attcollation)
        and r.attnum > 0 and not r.attisdropped
    where o.attrelid = old and o.attnum > 0 and not o.attisdropped
$$;

-- lost_column: a column of a relation that an object uses and that is not among the kept ones; null if there is none.
create or replace function pgtrickle_internal.lost_column(relation_id oid, class_id oid, object_id oid, kept name[])
returns name
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select a.attname from pg_depend d
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where d.classid = class_id and d.objid = object_id and d.refclassid = 'pg_class'::regclass
        and d.refobjid = relation_id and d.refobjsubid > 0 and a.attname <> all (kept)
    order by a.attnum limit 1
$$;

-- reading_views: the views whose rule reads a relation directly.
create or replace function pgtrickle_internal.reading_views(relation_id oid) returns table (view_id oid, rule_id oid)
language sql stable rows 2 set search_path = pg_catalog, pg_temp
as $$
    select distinct c.oid, w.oid from pg_depend d
    join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid and w.rulename = '_RETURN'
    join pg_class c on c.oid = w.ev_class and c.relkind = 'v'
    where d.refclassid = 'pg_class'::regclass and d.refobjid = relation_id and c.oid <> relation_id
$$;

-- view_code: a function that replacing a view could run with the rights of the caller, who is not its author; null if
-- there is none. PostgreSQL evaluates constants of a view while it parses its text.
create or replace function pgtrickle_internal.view_code(view_id oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select pgtrickle_internal.untrusted_of(c.oid, quote_ident(current_user)::regrole) from pg_class c
    where c.oid = view_id and c.relowner <> quote_ident(current_user)::regrole
$$;

-- own_triggers: the triggers on a table that users created.
create or replace function pgtrickle_internal.own_triggers(relation_id oid) returns setof pg_trigger
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select t.* from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = relation_id and not t.tgisinternal
        and p.pronamespace not in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace, 'pgtrickle_changes'::regnamespace)
$$;

-- own_indexes: the indexes on a relation that users created, those of constraints included.
create or replace function pgtrickle_internal.own_indexes(relation_id oid)
returns table (index_id oid, index_name name, constraint_id oid)
language sql stable rows 2 set search_path = pg_catalog, pg_temp
as $$
    select c.oid, c.relname, k.oid from pg_index i join pg_class c on c.oid = i.indexrelid
    left join pg_constraint k on k.conindid = c.oid and k.conrelid = relation_id and k.contype in ('p', 'u', 'x')
    where i.indrelid = relation_id and i.indisvalid and c.relname !~ '_pgtrickle_row\d*$'
$$;

-- carried_parts: each part of a relation, with its fate: it is kept, it is lost with a column, or it forbids the
-- replacement. `kept` are the columns that remain as they are.
create or replace function pgtrickle_internal.carried_parts(relation_id oid, kept name[])
returns table (fate text, part text, reason text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with relation as (select c.*, y.typarray from pg_class c join pg_type y on y.oid = c.reltype where c.oid = relation_id),
    is_other(shape) as (
        select exists (select from pg_attribute a where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped
            and a.attname <> all (kept))
    )
    select case when l.name is null then 'kept' else 'lost' end, format('index %I', i.index_name),
        'it uses column ' || quote_ident(l.name)
    from pgtrickle_internal.own_indexes(relation_id) i
    cross join lateral (select pgtrickle_internal.lost_column(relation_id,
        case when i.constraint_id is null then 'pg_class'::regclass else 'pg_constraint'::regclass end,
        coalesce(i.constraint_id, i.index_id), kept)) l(name)
    union all
    select 'lost', format('index %I', c.relname), 'it is invalid' from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = relation_id and not i.indisvalid
    union all
    select case when l.name is null then 'kept' else 'lost' end, format('constraint %I', k.conname),
        'it uses column ' || quote_ident(l.name)
    from pg_constraint k
    cross join lateral (select pgtrickle_internal.lost_column(relation_id, 'pg_constraint'::regclass, k.oid, kept)) l(name)
    where k.conrelid = relation_id and k.contype in ('c', 'f')
    union all
    select case when l.name is null then 'kept' else 'lost' end, format('statistics %I', x.stxname),
        'they use column ' || quote_ident(l.name)
    from pg_statistic_ext x
    cross join lateral (select pgtrickle_internal.lost_column(relation_id, 'pg_statistic_ext'::regclass, x.oid, kept)) l(name)
    where x.stxrelid = relation_id
    union all
    select case when l.name is null then 'kept' else 'refused' end, format('trigger %I', t.tgname),
        'it uses column ' || quote_ident(l.name)
    from pgtrickle_internal.own_triggers(relation_id) t
    cross join lateral (select pgtrickle_internal.lost_column(relation_id, 'pg_trigger'::regclass, t.oid, kept)) l(name)
    union all
    select case when l.name is null then 'kept' else 'refused' end, format('policy %I', y.polname),
        'it uses column ' || quote_ident(l.name)
    from pg_policy y
    cross join lateral (select pgtrickle_internal.lost_column(relation_id, 'pg_policy'::regclass, y.oid, kept)) l(name)
    where y.polrelid = relation_id
    union all
    select case when l.name is not null or not pg_has_role(p.pubowner, 'USAGE') then 'refused' else 'kept' end,
        format('publication %I', p.pubname), case when l.name is not null then 'it publishes column ' || quote_ident(l.name)
            else format('only its owner, %I, can add a table to it', pg_get_userbyid(p.pubowner)) end
    from pg_publication_rel r join pg_publication p on p.oid = r.prpubid
    cross join lateral (select pgtrickle_internal.lost_column(relation_id, 'pg_publication_rel'::regclass, r.oid, kept)) l(name)
    where r.prrelid = relation_id
    union all
    -- it would go on with changes of rows that it does not have
    select 'refused', format('the subscriber with slot %I', s.slot), 'it does not receive the new columns and rows: drop its subscription first'
    from pgtrickle.publication_status s
    where s.stream_table = (select pgtrickle_internal.printed(t.oid) from relation t) and s.slot_state in ('active', 'inactive')
    union all
    select case when f.reason is null then 'kept' else 'refused' end,
        format('view %s', case when c.relpersistence = 't' then quote_ident(c.relname) else pgtrickle_internal.printed(c.oid) end),
        f.reason
    from pgtrickle_internal.reading_views(relation_id) v join pg_class c on c.oid = v.view_id
    cross join lateral (select case
        when pgtrickle_internal.lost_column(relation_id, 'pg_rewrite'::regclass, v.rule_id, kept) is not null
            then format('it reads column %I', pgtrickle_internal.lost_column(relation_id, 'pg_rewrite'::regclass, v.rule_id, kept))
        when (select shape from is_other) and (select w.ev_action::text from pg_rewrite w where w.oid = v.rule_id)
                ~ '\{VAR :varno \d+ :varattno 0 ' then 'it reads whole rows'
        when c.relpersistence = 't' and c.relnamespace <> pg_my_temp_schema() then 'it is a temporary view of another session'
        when not pg_has_role(c.relowner, 'USAGE') then format('only its owner, %I, can replace it', pg_get_userbyid(c.relowner))
        else 'it would run with your rights: ' || pgtrickle_internal.view_code(c.oid) end) f(reason)
    union all
    select case when l.name is null then 'kept' else 'refused' end, format('stream table %s', pgtrickle_internal.shown_name(d.pgt_id)),
        'it reads column ' || quote_ident(l.name)
    from pgtrickle.pgt_dependencies d
    left join lateral (select u.name from unnest(d.columns_used) with ordinality u(name, number)
        where u.name <> all (kept) order by u.number limit 1) l on true
    where d.source_relid = relation_id and d.source_type not in ('view', 'function')
    union all
    -- what else PostgreSQL would drop with it, or drop it with
    select distinct 'refused', coalesce(pg_describe_object('pg_class'::regclass, m.oid, 0), pg_describe_object(d.classid, d.objid, 0)),
        case when m.oid is null then 'it depends on the table itself' else 'it would have to be created again' end
    from pg_depend d cross join relation t
    left join pg_rewrite u on d.classid = 'pg_rewrite'::regclass and u.oid = d.objid and u.rulename = '_RETURN'
    left join pg_class m on m.oid = u.ev_class and m.relkind = 'm'
    where ((d.refclassid = 'pg_class'::regclass and d.refobjid = t.oid and (d.deptype = 'n' or d.classid = 'pg_rewrite'::regclass)
            or d.refclassid = 'pg_type'::regclass and d.refobjid in (t.reltype, t.typarray) and d.deptype = 'n'))
        and (d.classid, d.objid) <> ('pg_class'::regclass, t.oid)
        and not (d.classid = 'pg_rewrite'::regclass and (d.objid in (select v.rule_id from pgtrickle_internal.reading_views(relation_id) v)
            or exists (select from pg_rewrite w where w.oid = d.objid and w.ev_class = t.oid and w.rulename = '_RETURN')))
        and not (d.classid = 'pg_constraint'::regclass and exists (select from pg_constraint k where k.oid = d.objid
            and k.conrelid = t.oid))
        and d.classid not in ('pg_trigger'::regclass, 'pg_policy'::regclass, 'pg_publication_rel'::regclass,
            'pg_statistic_ext'::regclass, 'pg_attrdef'::regclass)
        and not (d.classid = 'pg_class'::regclass and exists (select from pg_index i where i.indexrelid = d.objid and i.indrelid = t.oid))
    union all
    select 'refused', format('table %s', pgtrickle_internal.printed(i.inhparent)), 'it is a parent of the table'
    from pg_inherits i where i.inhrelid = relation_id
    union all
    select 'refused', pg_describe_object(d.refclassid, d.refobjid, 0), 'the table belongs to it' from pg_depend d
    where d.classid = 'pg_class'::regclass and d.objid = relation_id and d.deptype = 'e'
    union all
    select 'kept', format('grants to %s', string_agg(distinct case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end, ', ')), null
    from (
        select a.grantee from relation t cross join lateral aclexplode(t.relacl) a where a.grantee <> t.relowner
        union select e.grantee from pg_attribute a cross join lateral aclexplode(a.attacl) e
        where a.attrelid = relation_id and a.attname = any (kept)
    ) g having count(*) > 0
    union all
    select 'lost', format('grants on column %I', a.attname), 'the column is not kept' from pg_attribute a
    where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped and a.attacl is not null and a.attname <> all (kept)
    union all
    select 'kept', format('%s comments', count(*)), null from pg_description d
    left join pg_attribute a on a.attrelid = d.objoid and a.attnum = d.objsubid
    where d.classoid = 'pg_class'::regclass and d.objoid = relation_id and (d.objsubid = 0 or a.attname = any (kept))
    having count(*) > 0
$$;

-- refuse_breaking: refuse to replace a relation if something that cannot be kept would break, and name all of it.
create or replace function pgtrickle_internal.refuse_breaking(relation_id oid, kept name[], what text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    refused text := (
        select string_agg(format('%s (%s)', p.part, p.reason), ', ' order by p.part)
        from pgtrickle_internal.carried_parts(relation_id, kept) p where p.fate = 'refused');
begin
    if refused is not null then
        raise exception '%', format('cannot %s %s, because this would break: %s', what, pgtrickle_internal.printed(relation_id), refused)
        using errcode = 'dependent_objects_still_exist',
            hint = 'Drop or change what is named, then try again. Nothing was changed.';
    end if;
end
$$;

-- tell_losses: a notice about what a relation loses with its columns.
create or replace function pgtrickle_internal.tell_losses(relation_id oid, kept name[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    lost text := (
        select string_agg(format('%s (%s)', p.part, p.reason), ', ' order by p.part)
        from pgtrickle_internal.carried_parts(relation_id, kept) p where p.fate = 'lost');
begin
    if lost is not null then
        raise notice '%', format('%s loses: %s', pgtrickle_internal.printed(relation_id), lost);
    end if;
end
$$;
