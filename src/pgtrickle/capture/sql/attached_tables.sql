-- attached_tables: the declared tables of an attached database, and what stream tables read of them.
-- Parameter: the alias of the database.  Locks: nothing.
select t.table_id as number, t.origin_schema::text as schema, t.origin_name::text as name, t.source_relid::bigint as relation,
    t.is_stand_in, s.source_relid is not null as is_read,
    array(
        select a.attname::text from pg_attribute a
        where a.attrelid = s.source_relid and a.attnum = any (s.columns_captured) and not a.attisdropped order by a.attnum
    ) as wanted,
    t.definition, t.followed_columns::text[] as followed,
    -- a copy that was dropped and created again has no rows
    case when s.source_relid is null or s.filled_at is not null then t.frontier::text end as frontier,
    case when s.source_relid is null or s.filled_at is not null then t.position::text end as position, t.last_error
from pgtrickle.pgt_attached_tables t
left join pgtrickle.pgt_sources s on s.source_relid = t.source_relid and exists (
    select from pgtrickle.pgt_dependencies d where d.source_relid = t.source_relid and d.source_type = 'attached_table')
where t.alias = %(alias)s order by t.table_id
