-- keys: what the constraints and the indexes of a table guarantee about all of its rows.

-- is_never_null: whether no row of a table, its partitions and its children has a null in a column. A NOT NULL
-- constraint that is NOT VALID says nothing about older rows (PostgreSQL 18), and before version 18 a child may drop
-- the constraint that its parent has.
create or replace function pgtrickle_internal.is_never_null(relation_id oid, column_name name) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(a.attnotnull and not exists (
        select from pg_constraint k where k.conrelid = a.attrelid and k.contype = 'n' and not k.convalidated
            and k.conkey = array[a.attnum])), false)
    from pgtrickle_internal.tree_of(relation_id) t(id)
    join pg_attribute a on a.attrelid = t.id and a.attname = column_name and not a.attisdropped
$$;

-- separates_values: whether an index takes values for equal wherever the equality of their column does. An operator
-- class may distinguish equal values (record_image_ops: 1.0 and 1.00; text_ops on citext), and so may a collation,
-- if that of the column is not deterministic.
create or replace function pgtrickle_internal.separates_values(class_id oid, index_collation oid, type_id oid, column_collation oid)
returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select (index_collation = column_collation or not exists (
            select from pg_collation l where l.oid = column_collation and not l.collisdeterministic))
        and case when m.amname = 'btree' then coalesce((
            select x.amopopr = (
                select y.amopopr from pg_opclass d join pg_amop y on y.amopfamily = d.opcfamily
                    and y.amoplefttype = d.opcintype and y.amoprighttype = d.opcintype and y.amopstrategy = 3
                where d.opcmethod = o.opcmethod and d.opcdefault
                    and d.opcintype in (pgtrickle_internal.base_type(type_id), o.opcintype)
                order by d.opcintype = pgtrickle_internal.base_type(type_id) desc limit 1)
            from pg_amop x where x.amopfamily = o.opcfamily and x.amopstrategy = 3
                and x.amoplefttype = o.opcintype and x.amoprighttype = o.opcintype), false)
        else o.opcdefault end
    from pg_opclass o join pg_am m on m.oid = o.opcmethod where o.oid = class_id
$$;

-- unique_keys: the columns by which a table has at most one row, with the index that enforces it. The children of a
-- table that is not partitioned may repeat its keys.
create or replace function pgtrickle_internal.unique_keys(relation_id oid)
returns table (index_id oid, is_primary boolean, column_names name[])
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select i.indexrelid, i.indisprimary, k.names
    from pg_class c join pg_index i on i.indrelid = c.oid
    cross join lateral (
        select array_agg(a.attname order by part.position) as names,
            bool_and(pgtrickle_internal.is_never_null(c.oid, a.attname)
                and pgtrickle_internal.separates_values(part.class_id, part.collation_id, a.atttypid, a.attcollation)) as is_key
        from unnest(i.indkey::smallint[], i.indclass::oid[], i.indcollation::oid[])
            with ordinality as part(number, class_id, collation_id, position)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
        where part.position <= i.indnkeyatts) k
    where c.oid = relation_id and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
        and 0 <> all (i.indkey::smallint[]) and k.is_key
        and (c.relkind = 'p' or not exists (select from pg_inherits h where h.inhparent = c.oid))
$$;
