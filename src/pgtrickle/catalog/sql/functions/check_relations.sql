-- check_relations: refuse relations whose changes cannot be tracked, or that the owner or the sidecar may not
-- read. Runs as the sidecar's role; `reader` is the owner of the stream table.

-- unfit_relation: why a relation cannot be a source, or null.
create or replace function pgtrickle_internal.unfit_relation(relation_id oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case
        when n.nspname in ('pg_catalog', 'information_schema', 'pg_toast') or c.oid < 16384
            then 'the system catalog'
        when n.nspname in ('pgtrickle', 'pgtrickle_internal', 'pgtrickle_changes', 'pgtrickle_state') then 'a table of pgtrickle itself:'
        when c.relpersistence = 't' then 'the temporary table'
        when c.relkind = 'S' then 'a sequence, which changes outside of transactions:'
        when c.relkind not in ('r', 'p', 'v', 'm', 'f') then 'something that is not a table:'
        when c.relpersistence = 'u' then 'the unlogged table'
        end
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = relation_id
$$;

-- unfit_part: the first partition or child, at any level, whose rows can change without firing a trigger, with the
-- reason and a hint. Returns no row if there is none.
create or replace function pgtrickle_internal.unfit_part(relation_id oid) returns table (reason text, hint text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select format(u.reason, pgtrickle_internal.printed(relation_id), pgtrickle_internal.printed(c.oid)), u.hint
    from pgtrickle_internal.tree_of(relation_id) t(id) join pg_class c on c.oid = t.id
    cross join lateral (
        select 'the temporary table %2$s inherits from %1$s, and only its own session sees its rows',
            'Drop the temporary table, or end its session.'
        where c.relpersistence = 't'
        union all
        select '%2$s, a partition or child of %1$s, is unlogged: a crash of the server would empty it without a trace',
            'alter table ... set logged'
        where c.relpersistence = 'u'
        union all
        select '%2$s, a partition or child of %1$s, is a foreign table: pgtrickle would not see its changes',
            'Detach it, and add its rows in the query with UNION ALL.'
        where c.relkind = 'f') u(reason, hint)
    where t.id <> relation_id
    order by c.oid limit 1
$$;

create or replace function pgtrickle_internal.may_select(role_id oid, relation_id oid, columns smallint[])
returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select has_table_privilege(role_id, relation_id, 'SELECT')
        or (cardinality(columns) = 0 and has_any_column_privilege(role_id, relation_id, 'SELECT'))
        or (cardinality(columns) > 0 and not exists (
            select from unnest(columns) number
            where not has_column_privilege(role_id, relation_id, number, 'SELECT')))
$$;

-- check_copying: refuse a materialized view or foreign table that the sidecar may not read.
create or replace function pgtrickle_internal.check_copying(relation_id oid, columns smallint[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    sidecar oid := pgtrickle.sidecar_role();
    printed text := pgtrickle_internal.printed(relation_id);
begin
    if not pgtrickle_internal.may_select(sidecar, relation_id, columns) then
        raise exception '%', format('the role of the sidecar may not read %s', printed) using
            errcode = 'insufficient_privilege',
            hint = format('grant select on %s to %I', printed, pg_get_userbyid(sidecar));
    end if;
end
$$;

create or replace function pgtrickle_internal.check_relation(relation_id oid, checked_as oid, reader oid, columns smallint[])
returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    sidecar oid := pgtrickle.sidecar_role();
    printed text := pgtrickle_internal.printed(relation_id);
    unfit text := pgtrickle_internal.unfit_relation(relation_id);
    kind "char" := (select relkind from pg_class where oid = relation_id);
    namespace oid := (select relnamespace from pg_class where oid = relation_id);
    restricted name;
    borrowed text;
    unfit_part record;
begin
    if unfit is not null then
        raise exception '%', format('the query reads %s %s', unfit, printed) using
            errcode = 'feature_not_supported',
            hint = 'A stream table can read ordinary, partitioned and foreign tables, views, materialized views '
                'and other stream tables.';
    end if;
    if not pgtrickle_internal.may_select(checked_as, relation_id, columns) then
        raise exception '%', format('permission denied for table %s', printed) using
            errcode = 'insufficient_privilege',
            hint = format('grant select on %s to %I', printed, pg_get_userbyid(checked_as));
    end if;
    if not has_schema_privilege(sidecar, namespace, 'USAGE') then
        raise exception '%', format('the role of the sidecar may not use schema %s', namespace::regnamespace) using
            errcode = 'insufficient_privilege',
            hint = format('grant usage on schema %s to %I', namespace::regnamespace, pg_get_userbyid(sidecar));
    end if;
    if kind = 'v' then
        -- PostgreSQL evaluates a query over a security barrier itself, so the view is read as it is
        if exists (select from pg_class c cross join lateral pg_options_to_table(c.reloptions) o where c.oid = relation_id
                and o.option_name = 'security_barrier' and o.option_value::boolean)
            and not pgtrickle_internal.may_select(sidecar, relation_id, columns)
        then
            raise exception '%', format('the role of the sidecar may not read view %s', printed) using
                errcode = 'insufficient_privilege',
                hint = format('grant select on %s to %I', printed, pg_get_userbyid(sidecar));
        end if;
        return;
    end if;
    select pgtrickle_internal.borrowed_credentials(t.id) into borrowed
    from pgtrickle_internal.tree_of(relation_id) t(id) order by 1 nulls last limit 1;
    if borrowed is not null then
        raise exception '%', format('%s would be read with the credentials of the sidecar: %s', printed, borrowed) using
            errcode = 'TA003',
            hint = 'Let an administrator own the foreign table, or give its server a user mapping for public.';
    end if;
    if kind in ('m', 'f') then
        perform pgtrickle_internal.check_copying(relation_id, columns);
        return;
    end if;
    select p.reason, p.hint into unfit_part from pgtrickle_internal.unfit_part(relation_id) p;
    if found then
        raise exception '%', unfit_part.reason using errcode = 'feature_not_supported', hint = unfit_part.hint;
    end if;
    if not pgtrickle_internal.may_select(sidecar, relation_id, columns)
        or exists (select from pgtrickle_internal.tree_of(relation_id) t(id)
            where not has_table_privilege(sidecar, t.id, 'TRIGGER'))
    then
        raise exception '%', format('the role of the sidecar may not capture the changes of table %s', printed) using
            errcode = 'insufficient_privilege',
            hint = (select 'grant select, trigger on '
                    || string_agg(pgtrickle_internal.printed(t.id), ', ' order by t.id)
                    || format(' to %I', pg_get_userbyid(sidecar))
                from pgtrickle_internal.tree_of(relation_id) t(id)
                where t.id = relation_id or not has_table_privilege(sidecar, t.id, 'TRIGGER'));
    end if;
    select r.rolname into restricted from pg_roles r
    where r.oid in (checked_as, reader, sidecar) and pgtrickle_internal.row_security_applies(relation_id, r.oid)
    order by r.oid = sidecar limit 1;
    if restricted is not null then
        raise exception '%', format('row-level security hides rows of %s from %I', printed, restricted) using
            errcode = 'TA004',
            hint = format('The stream table would show too many rows or too few. Give %1$I the attribute '
                'BYPASSRLS, or keep the allowed rows in a table of their own.', restricted);
    end if;
end
$$;

-- check_query: refuse the query unless all of it can be tracked.
create or replace function pgtrickle_internal.check_query(query_view oid, reader oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_relation(r.relation_id, r.checked_as, reader, r.columns)
    from (select * from pgtrickle_internal.relations_of(query_view, reader) order by relation_id) r;
    perform pgtrickle_internal.check_rules(query_view, reader);
    perform pgtrickle_internal.check_object_names(query_view, reader);
    perform pgtrickle_internal.check_functions(query_view, reader);
end
$$;
