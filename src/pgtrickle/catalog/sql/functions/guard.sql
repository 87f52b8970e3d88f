-- guard: refuse direct writes to a stream table.

-- refuse_direct_write: let only the sidecar write, and only while it applies a refresh.
create or replace function pgtrickle.refuse_direct_write() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('pgtrickle.applying', true) = 'on'
        and pgtrickle_internal.may_act_as(pgtrickle.sidecar_role())
    then
        return null;
    end if;
    raise exception '%', format('%I.%I is a stream table and cannot be written to directly',
            tg_table_schema, tg_table_name) using
        errcode = 'object_not_in_prerequisite_state',
        hint = 'Change its sources; the next refresh applies the change here.';
end
$$;
comment on function pgtrickle.refuse_direct_write() is
    'Trigger function that refuses direct writes to a stream table. pgtrickle attaches it; it cannot be '
    'called.';

-- is_hashable: whether values of a type can be hashed as part of a row, and sorted: a refresh does both.
create or replace function pgtrickle_internal.is_hashable(type_id oid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    t pg_type;
begin
    select * into strict t from pg_type where oid = type_id;
    if t.typtype = 'd' then
        -- PostgreSQL finds no hash function for a domain over a range
        return pgtrickle_internal.is_hashable(t.typbasetype) and not exists (
            select from pg_type b where b.oid = pgtrickle_internal.base_type(type_id) and b.typtype in ('r', 'm'));
    elsif t.typtype = 'e' then
        return true;
    elsif t.typtype in ('r', 'm') then
        return (select pgtrickle_internal.is_hashable(rngsubtype) from pg_range where type_id in (rngtypid, rngmultitypid));
    elsif t.typtype = 'c' then
        return (select coalesce(bool_and(pgtrickle_internal.is_hashable(atttypid)), true)
            from pg_attribute where attrelid = t.typrelid and attnum > 0 and not attisdropped);
    elsif t.typcategory = 'A' and t.typelem <> 0 then
        return pgtrickle_internal.is_hashable(t.typelem);
    end if;
    return 2 = (
        select count(distinct m.amname) from pg_opclass o
        join pg_am m on m.oid = o.opcmethod and m.amname in ('btree', 'hash')
        join pg_amproc f on f.amprocfamily = o.opcfamily and f.amproclefttype = o.opcintype
            and f.amprocrighttype = o.opcintype and f.amprocnum = case m.amname when 'hash' then 2 else 1 end
        where o.opcdefault and o.opcintype = any (array(
            select type_id
            union all
            select k.casttarget from pg_cast k
            where k.castsource = type_id and k.castmethod = 'b' and k.castcontext = 'i')));
end
$$;

-- match_columns: each column of a table as an SQL expression whose value can be hashed. Where the collation treats
-- different texts as equal, the expression compares them byte by byte: readers see which one is stored.
create or replace function pgtrickle_internal.match_columns(relation_id oid) returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with columns as (
        select attnum, attname, atttypid, attcollation
        from pg_attribute where attrelid = relation_id and attnum > 0 and not attisdropped
    -- a wide table has many columns of few types
    ), types as materialized (
        select t.type_id, pgtrickle_internal.is_hashable(t.type_id) as is_hashable
        from (select distinct atttypid as type_id from columns) t
    )
    select array_agg(case
        -- their text depends only on the value, and only a superuser can define a cast for them
        when not is_hashable and pgtrickle_internal.base_type(atttypid)::regtype = any (
                '{json,xml,tsvector,tsquery,bit,varbit,jsonpath,pg_snapshot}'::regtype[])
            then format('(%I)::text', attname)
        when not is_hashable then format('pgtrickle_internal.value_text(%I)', attname)
        when not coalesce(collisdeterministic, true) then format('(%I collate pg_catalog."C")', attname)
        else format('%I', attname) end order by attnum)
    from columns join types on type_id = atttypid left join pg_collation c on c.oid = attcollation
$$;

-- row_index_name: a free name for the index on whole rows of a table.
create or replace function pgtrickle_internal.row_index_name(relation_id oid) returns name
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    table_name name := (select relname from pg_class where oid = relation_id);
    namespace oid := (select relnamespace from pg_class where oid = relation_id);
    index_name name;
    number integer := 0;
begin
    loop
        index_name := left(table_name::text, 63);
        while octet_length(index_name || '_pgtrickle_row' || coalesce(nullif(number, 0)::text, '')) > 63 loop
            index_name := left(index_name::text, -1);
        end loop;
        index_name := index_name || '_pgtrickle_row' || coalesce(nullif(number, 0)::text, '');
        exit when not exists (select from pg_class where relname = index_name and relnamespace = namespace);
        number := number + 1;
    end loop;
    return index_name;
end
$$;

-- create_row_index: create the index by which a refresh finds whole rows. Runs as the owner of the table. If a
-- column cannot be indexed, or there are more columns than PostgreSQL 17 and older can store of an index
-- expression, the table gets no index and a refresh scans it.
create or replace function pgtrickle_internal.create_row_index(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('create index %I on %s (hash_record_extended(row(%s), 0))', pgtrickle_internal.row_index_name(relation_id),
        pgtrickle_internal.printed(relation_id), array_to_string(pgtrickle_internal.match_columns(relation_id), ', '));
exception when invalid_object_definition or feature_not_supported or undefined_function
    or program_limit_exceeded then
    raise notice '%', format('%s has no index on whole rows, so refreshes may be slow: %s', pgtrickle_internal.printed(relation_id), sqlerrm);
end
$$;

-- leaves_row_index: whether the sidecar can create the index of a new table itself. It does so after the first load,
-- because to fill an index row by row, in the order of a hash, costs many times what it costs to build it.
create or replace function pgtrickle_internal.leaves_row_index(relation_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
return (select pg_has_role(pgtrickle.sidecar_role(), c.relowner, 'USAGE')
        and has_schema_privilege(pgtrickle.sidecar_role(), c.relnamespace, 'CREATE')
    from pg_class c where c.oid = relation_id);

-- row_index: the index on whole rows of a table; null if it has none.
create or replace function pgtrickle_internal.row_index(relation_id oid) returns oid
language sql stable set search_path = pg_catalog, pg_temp
return (select i.indexrelid from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = relation_id and c.relname ~ '_pgtrickle_row\d*$');

-- finish_row_index: create the index on whole rows after a load, unless there is one; whether there is one then. It
-- is missing if a column cannot be indexed, or if the sidecar has lost the right to create it in the meantime.
create or replace function pgtrickle_internal.finish_row_index(relation_id oid) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if pgtrickle_internal.row_index(relation_id) is null
        and (select pg_has_role(c.relowner, 'USAGE') and has_schema_privilege(c.relnamespace, 'CREATE')
            from pg_class c where c.oid = relation_id)
    then
        perform pgtrickle_internal.create_row_index(relation_id);
    end if;
    return pgtrickle_internal.row_index(relation_id) is not null;
end
$$;

-- rename_row_index: name the index on whole rows after its table. Runs as the owner of the table.
create or replace function pgtrickle_internal.rename_row_index(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    index_id oid := pgtrickle_internal.row_index(relation_id);
begin
    if index_id is not null then
        execute format('alter index %s rename to %I', pgtrickle_internal.printed(index_id), pgtrickle_internal.row_index_name(relation_id));
    end if;
end
$$;
