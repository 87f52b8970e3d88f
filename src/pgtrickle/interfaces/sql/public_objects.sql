-- public_objects: the public functions, procedures and views of schema pgtrickle, with what their COMMENTs say.
-- Reads: the catalog of PostgreSQL.
-- One row for each object: kind, name, comment, and its parts (arguments and columns) as JSON.
select case p.prokind when 'p' then 'procedure' else 'function' end as kind, p.proname::text as name,
    obj_description(p.oid, 'pg_proc') as comment,
    case when p.prokind = 'p' then null when p.proretset and a.columns is not null then 'rows'
        when p.proretset then 'rows of ' || format_type(p.prorettype, null) else format_type(p.prorettype, null) end as result,
    coalesce(a.arguments, '[]') as arguments, coalesce(a.columns, '[]') as columns
from pg_proc p
cross join lateral (
    select jsonb_agg(part order by position) filter (where mode in ('i', 'b', 'v')) as arguments,
        jsonb_agg(part order by position) filter (where mode = 't') as columns
    from (
        select n.position, coalesce(p.proargmodes[n.position], 'i') as mode, jsonb_build_object('name', p.proargnames[n.position],
            'type', format_type(coalesce(p.proallargtypes[n.position], p.proargtypes[n.position - 1]), null),
            'default', pg_get_function_arg_default(p.oid, n.position::integer), 'comment', null) as part
        from generate_subscripts(p.proargnames, 1) n(position)) parts) a
where p.pronamespace = 'pgtrickle'::regnamespace and p.prorettype <> 'trigger'::regtype
union all
select 'view', c.relname::text, obj_description(c.oid, 'pg_class'), null, '[]',
    (select jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
            'default', null, 'comment', col_description(c.oid, a.attnum)) order by a.attnum)
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)
from pg_class c where c.relkind = 'v' and c.relnamespace = 'pgtrickle'::regnamespace
order by 2
