-- describe_columns: the columns of relations, with the underlying types of domains.
-- Parameter: the ids of the relations. One row per live column, in order. The sixth column from the end says
-- whether texts are ordered by their bytes in UTF-8, which is not the order of their bytes in other encodings.
-- The fourth column from the end says whether the type has equality: a row or an array has it if all its parts do.
-- The next to last column is its equality operator. Outside of pg_catalog it has its schema: a plain = would not find it, or
-- would find the one of a type to which a value is cast, such as that of text for citext. The last column is the
-- collation, null for the default one.
select a.attrelid::bigint, a.attname, a.attnum, a.attnotnull and pgtrickle_internal.is_never_null(a.attrelid, a.attname),
    format_type(b.oid, m.typmod),
    format_type(b.oid, null), b.typtype, b.typcategory,
    case when b.oid = 'numeric'::regtype and m.typmod >= 4 then ((m.typmod - 4) >> 16) & 65535 end,
    case when b.oid = 'numeric'::regtype and m.typmod >= 4
        -- eleven bits with a sign
        then (((m.typmod - 4) & 2047) # 1024) - 1024 end,
    coalesce(l.collisdeterministic, true),
    coalesce(case l.collprovider when 'd' then d.is_bytewise
        when 'c' then l.collcollate in ('C', 'POSIX')
        when 'b' then coalesce(to_jsonb(l) ->> 'colllocale', '') in ('C', 'C.UTF-8') end, false)
        and getdatabaseencoding() in ('UTF8', 'LATIN1', 'SQL_ASCII'),
    case when t.typtype = 'd' then format_type(t.oid, null) end,
    e.has_equality, b.typdelim::text, coalesce(q.equals, '='),
    case when l.collname <> 'default' then format('%%I.%%I', ln.nspname, l.collname) end
from pg_attribute a
join pg_type t on t.oid = a.atttypid
cross join lateral (
    with recursive below(id, typmod, is_domain, depth) as (
        select a.atttypid, a.atttypmod, t.typtype = 'd', 0
        union all
        select y.typbasetype, y.typtypmod, z.typtype = 'd', depth + 1
        from below join pg_type y on y.oid = below.id join pg_type z on z.oid = y.typbasetype
        where below.is_domain
    )
    select id, typmod from below order by depth desc limit 1
) m
join pg_type b on b.oid = m.id
cross join lateral (
    with recursive parts(id) as (
        select b.oid
        union
        select x.id
        from parts p join pg_type y on y.oid = p.id
        cross join lateral (
            select y.typbasetype where y.typtype = 'd'
            union all
            select y.typelem where y.typcategory = 'A' and y.typelem <> 0
            union all
            select f.atttypid from pg_attribute f
            where y.typtype = 'c' and f.attrelid = y.typrelid and f.attnum > 0 and not f.attisdropped
        ) x(id)
    )
    select bool_and(y.typtype <> 'b' or (y.typcategory = 'A' and y.typelem <> 0) or exists (
        select from pg_opclass o join pg_am m on m.oid = o.opcmethod and m.amname in ('btree', 'hash')
        where o.opcdefault and (o.opcintype = y.oid or exists (
            select from pg_cast k where k.castsource = y.oid and k.casttarget = o.opcintype
                and k.castmethod = 'b' and k.castcontext = 'i')))) as has_equality
    from parts p join pg_type y on y.oid = p.id
) e
left join lateral (
    select format('operator(%%I.%%s)', n.nspname, p.oprname) as equals
    from pg_opclass o
    join pg_am m on m.oid = o.opcmethod and m.amname in ('btree', 'hash')
    join pg_amop x on x.amopfamily = o.opcfamily and x.amoplefttype = b.oid and x.amoprighttype = b.oid
        and x.amopstrategy = case m.amname when 'btree' then 3 else 1 end
    join pg_operator p on p.oid = x.amopopr
    join pg_namespace n on n.oid = p.oprnamespace and n.nspname <> 'pg_catalog'
    where o.opcdefault and o.opcintype = b.oid
    order by m.amname limit 1
) q on true
left join pg_collation l on l.oid = a.attcollation
left join pg_namespace ln on ln.oid = l.collnamespace
cross join (
    select case coalesce(to_jsonb(w) ->> 'datlocprovider', 'c')
        when 'c' then w.datcollate in ('C', 'POSIX')
        when 'b' then coalesce(to_jsonb(w) ->> 'datlocale', '') in ('C', 'C.UTF-8')
        else false end as is_bytewise
    from pg_database w where w.datname = current_database()
) d
where a.attrelid = any (%s::oid[]) and a.attnum > 0 and not a.attisdropped
order by a.attrelid, a.attnum
