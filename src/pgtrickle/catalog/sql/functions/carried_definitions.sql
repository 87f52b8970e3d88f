-- carried_definitions: the statements that give a replacement what is attached to a relation. Run as the owner of both.

-- part_definitions: the statements, written for the name that the relation has now. Those that are later need names that
-- are free only once the old relation is dropped. The caller holds a lock under which nobody else changes these parts.
create or replace function pgtrickle_internal.part_definitions(old oid, replacement oid, kept name[])
returns table (is_later boolean, definition text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with relation as (select c.*, pgtrickle_internal.printed(c.oid) as printed from pg_class c where c.oid = old)
    select false, format('comment on table %s is %L', t.printed, obj_description(old, 'pg_class'))
    from relation t where obj_description(old, 'pg_class') is not null
    union all
    select false, format('comment on column %s.%I is %L', t.printed, a.attname, col_description(old, a.attnum))
    from relation t join pg_attribute a on a.attrelid = t.oid and a.attname = any (kept)
    where col_description(old, a.attnum) is not null
    union all
    select false, format('security label for %I on %s is %L', l.provider, case l.objsubid when 0 then format('table %s', t.printed)
        else format('column %s.%I', t.printed, a.attname) end, l.label)
    from relation t join pg_seclabel l on l.classoid = 'pg_class'::regclass and l.objoid = t.oid
    left join pg_attribute a on a.attrelid = t.oid and a.attnum = l.objsubid
    where l.objsubid = 0 or a.attname = any (kept)
    union all
    select false, p.definition from (
        select g.tgname, 1, pg_get_triggerdef(g.oid) from pgtrickle_internal.own_triggers(old) g
        union all
        select g.tgname, 2, format('alter table %s %s trigger %I', t.printed, case g.tgenabled when 'D' then 'disable'
            when 'R' then 'enable replica' else 'enable always' end, g.tgname)
        from relation t, pgtrickle_internal.own_triggers(old) g where g.tgenabled <> 'O'
        union all
        select g.tgname, 3, format('comment on trigger %I on %s is %L', g.tgname, t.printed, obj_description(g.oid, 'pg_trigger'))
        from relation t, pgtrickle_internal.own_triggers(old) g where obj_description(g.oid, 'pg_trigger') is not null
        order by 1, 2
    ) p(name, step, definition)
    union all
    select false, format('create policy %I on %s as %s for %s to %s', y.polname, t.printed,
            case when y.polpermissive then 'permissive' else 'restrictive' end,
            case y.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
            (select string_agg(case r.id when 0 then 'public' else quote_ident(pg_get_userbyid(r.id)) end, ', ') from unnest(y.polroles) r(id)))
        || coalesce(' using (' || pg_get_expr(y.polqual, old) || ')', '')
        || coalesce(' with check (' || pg_get_expr(y.polwithcheck, old) || ')', '')
    from relation t join pg_policy y on y.polrelid = t.oid
    union all
    select false, format('comment on policy %I on %s is %L', y.polname, t.printed, obj_description(y.oid, 'pg_policy'))
    from relation t join pg_policy y on y.polrelid = t.oid where obj_description(y.oid, 'pg_policy') is not null
    union all
    select false, format('alter table %s enable row level security', t.printed) from relation t where t.relrowsecurity
    union all
    select false, format('alter table %s force row level security', t.printed) from relation t where t.relforcerowsecurity
    union all
    select false, format('alter publication %I add table %s', p.pubname, t.printed)
        || coalesce((select ' (' || string_agg(quote_ident(a.attname), ', ') || ')'
            from regexp_matches(to_jsonb(r) ->> 'prattrs', '\d+', 'g') n
            join pg_attribute a on a.attrelid = old and a.attnum = n[1]::smallint), '')
        || coalesce((select format(' where %s', to_jsonb(v) ->> 'rowfilter') from pg_publication_tables v
            where v.pubname = p.pubname and format('%I.%I', v.schemaname, v.tablename) = t.printed
                and to_jsonb(v) ->> 'rowfilter' is not null), '')
    from relation t join pg_publication_rel r on r.prrelid = t.oid join pg_publication p on p.oid = r.prpubid
    union all
    select true, s.definition from pgtrickle_internal.index_definitions(old, replacement, kept) s(definition)
    union all
    select true, s.definition from pgtrickle_internal.statistics_definitions(old, kept) s(definition)
$$;

-- carried_statements: the same in order: those for the moment when the replacement gets the name, or the later ones.
create or replace function pgtrickle_internal.carried_statements(old oid, replacement oid, is_later boolean) returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(d.definition order by d.number), '{}')
    from pgtrickle_internal.part_definitions(old, replacement, pgtrickle_internal.kept_columns(old, replacement))
        with ordinality d(is_later, definition, number)
    where d.is_later = carried_statements.is_later
$$;

-- index_definitions: the statements that name indexes and constraints as in the old relation.
create or replace function pgtrickle_internal.index_definitions(old oid, replacement oid, kept name[]) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with relation as (
        select c.*, n.nspname, pgtrickle_internal.printed(c.oid) as printed from pg_class c
        join pg_namespace n on n.oid = c.relnamespace where c.oid = old
    ),
    indexes as materialized (
        select i.*, x.indisclustered, x.indisreplident, format('%I.%I', t.nspname, i.index_name) as printed
        from relation t, pgtrickle_internal.own_indexes(old) i join pg_index x on x.indexrelid = i.index_id
        where pgtrickle_internal.lost_column(old,
            case when i.constraint_id is null then 'pg_class'::regclass else 'pg_constraint'::regclass end,
            coalesce(i.constraint_id, i.index_id), kept) is null
    ),
    constraints as materialized (
        select k.* from pg_constraint k where k.conrelid = old and k.contype in ('c', 'f', 'p', 'u', 'x')
            and pgtrickle_internal.lost_column(old, 'pg_constraint'::regclass, k.oid, kept) is null
    )
    select s.definition from (
        select 1, format('alter index %s rename to %I', pgtrickle_internal.part_name(replacement, i.index_id), i.index_name)
        from indexes i where i.constraint_id is null
        union all
        select 1, format('alter table %s rename constraint pgtrickle_part_%s to %I', t.printed, k.oid, k.conname)
        from relation t, constraints k
        union all
        select 2, format('comment on index %s is %L', i.printed, obj_description(i.index_id, 'pg_class'))
        from indexes i where obj_description(i.index_id, 'pg_class') is not null
        union all
        select 2, format('comment on constraint %I on %s is %L', k.conname, t.printed, obj_description(k.oid, 'pg_constraint'))
        from relation t, constraints k where obj_description(k.oid, 'pg_constraint') is not null
        union all
        select 2, format('alter table %s cluster on %I', t.printed, i.index_name) from relation t, indexes i where i.indisclustered
        union all
        select 2, format('alter table %s replica identity %s', t.printed, case t.relreplident when 'f' then 'full'
            when 'n' then 'nothing' else format('using index %I', i.index_name) end)
        from relation t left join indexes i on i.indisreplident
        where t.relreplident in ('f', 'n') or t.relreplident = 'i' and i.index_id is not null
    ) s(step, definition) order by s.step
$$;

-- statistics_definitions: the statements that create the extended statistics of a relation again.
create or replace function pgtrickle_internal.statistics_definitions(old oid, kept name[]) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select s.definition from (
        select x.oid, 1, pg_get_statisticsobjdef(x.oid) from pg_statistic_ext x
        union all
        select x.oid, 2, format('alter statistics %I.%I set statistics %s', n.nspname, x.stxname, x.stxstattarget)
        from pg_statistic_ext x join pg_namespace n on n.oid = x.stxnamespace where x.stxstattarget >= 0
        union all
        select x.oid, 2, format('comment on statistics %I.%I is %L', n.nspname, x.stxname, obj_description(x.oid, 'pg_statistic_ext'))
        from pg_statistic_ext x join pg_namespace n on n.oid = x.stxnamespace
        where obj_description(x.oid, 'pg_statistic_ext') is not null
    ) s(id, step, definition)
    join pg_statistic_ext x on x.oid = s.id
    where x.stxrelid = old and pgtrickle_internal.lost_column(old, 'pg_statistic_ext'::regclass, x.oid, kept) is null
    order by s.id, s.step
$$;

-- carry_grants: let everybody do with a replacement what they may do with the old relation, and nothing else. The owner
-- becomes the grantor of everything.
create or replace function pgtrickle_internal.carry_grants(old oid, replacement oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    printed text := pgtrickle_internal.printed(replacement);
    given record;
begin
    -- default privileges may have granted more
    for given in
        select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
        from pg_class c cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a where c.oid = replacement
    loop
        execute format('revoke all on %s from %s cascade', printed, given.grantee);
    end loop;
    for given in
        select a.privilege_type, '' as columns, a.grantee, a.is_grantable
        from pg_class c cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a where c.oid = old
        union all
        select e.privilege_type, format(' (%I)', a.attname), e.grantee, e.is_grantable
        from unnest(pgtrickle_internal.kept_columns(old, replacement)) k(name)
        join pg_attribute a on a.attrelid = old and a.attname = k.name cross join lateral aclexplode(a.attacl) e
    loop
        execute format('grant %s%s on %s to %s%s', given.privilege_type, given.columns, printed,
            case given.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(given.grantee)) end,
            case when given.is_grantable then ' with grant option' end);
    end loop;
    execute format('grant select, insert, update, delete, trigger on %s to %I', printed, pg_get_userbyid(pgtrickle.sidecar_role()));
end
$$;
