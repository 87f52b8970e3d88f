-- describe_logged: what tables of another database are made of, for stand-ins here and for decoding its log. It runs there,
-- where nothing of ours is installed, and has the keys of describe_origin. `identity` are the columns of the replica
-- identity, which come first among the keys; null if there is none, and all columns if it is full. `obstacle` says why the
-- changes of a table cannot be decoded, and `remedy` which statement helps; `may_publish` whether we may add it to the
-- publication. `version` changes whenever rows may have changed without a trace in the log.
-- Parameters: schemas, names, publication.  Locks: nothing.
with recursive wanted as (
    select c.oid, c.relname, c.relkind, c.relowner, c.relreplident, n.nspname, n.oid as schema_id,
        format('%%I.%%I', n.nspname, c.relname) as full_name
    from unnest(%(schemas)s::text[], %(names)s::text[]) w(schema_name, table_name)
    join pg_namespace n on n.nspname = w.schema_name
    join pg_class c on c.relnamespace = n.oid and c.relname = w.table_name
), tree(root, id) as (
    select w.oid, w.oid from wanted w
    union
    select t.root, h.inhrelid from tree t join pg_inherits h on h.inhparent = t.id
), parts as (
    select t.root, c.oid, c.relkind, c.relpersistence, c.relfilenode, c.relreplident, c.reltablespace,
        format('%%I.%%I', n.nspname, c.relname) as full_name,
        case c.relreplident
            when 'f' then array(select a.attname::text from pg_attribute a
                where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum)
            else (select array_agg(a.attname::text order by array_position(i.indkey::smallint[], a.attnum)) from pg_index i
                join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey::smallint[])
                where i.indrelid = c.oid and i.indimmediate and case c.relreplident
                    when 'd' then i.indisprimary when 'i' then i.indisreplident else false end) end as identity
    from tree t join pg_class c on c.oid = t.id join pg_namespace n on n.oid = c.relnamespace
), above(leaf, id) as (
    select w.oid, w.oid from wanted w
    union
    select a.leaf, h.inhparent from above a join pg_inherits h on h.inhrelid = a.id
), publication as (
    select p.*, to_jsonb(p) ->> 'pubgencols' as generated, p.xmin as written_by,
        pg_has_role(p.pubowner, 'USAGE') as is_ours
    from pg_publication p where p.pubname = %(publication)s
), based as (
    select a.attrelid, a.attnum, a.attname, a.atttypid, a.attcollation, a.attgenerated, m.id as base, m.modifier,
        coalesce((select bool_and(b.attnotnull and not exists (
                select from pg_constraint k where k.conrelid = b.attrelid and k.contype = 'n' and not k.convalidated
                    and k.conkey = array[b.attnum]))
            from tree t join pg_attribute b on b.attrelid = t.id and b.attname = a.attname and not b.attisdropped
            where t.root = a.attrelid), false) as is_never_null
    from wanted w join pg_attribute a on a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
    cross join lateral (
        with recursive below(id, modifier, depth) as (
            select a.atttypid, a.atttypmod, 0
            union all
            select t.typbasetype, t.typtypmod, b.depth + 1
            from below b join pg_type t on t.oid = b.id and t.typtype = 'd'
        )
        select b.id, b.modifier from below b order by b.depth desc limit 1
    ) m
), keys as (
    select w.oid, k.names, array(select unnest(k.names) order by 1) = array(select unnest(p.identity) order by 1) as is_identity,
        i.indisprimary, i.indexrelid
    from wanted w
    join parts p on p.root = w.oid and p.oid = w.oid
    join pg_index i on i.indrelid = w.oid
    cross join lateral (
        select array_agg(b.attname::text order by part.position) as names,
            bool_and(b.is_never_null and (part.collation_id = b.attcollation or not exists (
                    select from pg_collation l where l.oid = b.attcollation and not l.collisdeterministic))
                and case when m.amname = 'btree' then coalesce((
                    select x.amopopr = (
                        select y.amopopr from pg_opclass d join pg_amop y on y.amopfamily = d.opcfamily
                            and y.amoplefttype = d.opcintype and y.amoprighttype = d.opcintype and y.amopstrategy = 3
                        where d.opcmethod = o.opcmethod and d.opcdefault and d.opcintype in (b.base, o.opcintype)
                        order by d.opcintype = b.base desc limit 1)
                    from pg_amop x where x.amopfamily = o.opcfamily and x.amopstrategy = 3
                        and x.amoplefttype = o.opcintype and x.amoprighttype = o.opcintype), false)
                else o.opcdefault end) as is_key
        from unnest(i.indkey::smallint[], i.indclass::oid[], i.indcollation::oid[])
            with ordinality as part(number, class_id, collation_id, position)
        join based b on b.attrelid = i.indrelid and b.attnum = part.number
        join pg_opclass o on o.oid = part.class_id
        join pg_am m on m.oid = o.opcmethod
        where part.position <= i.indnkeyatts) k
    where i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and 0 <> all (i.indkey::smallint[]) and k.is_key
        and (w.relkind = 'p' or not exists (select from pg_inherits h where h.inhparent = w.oid))
), indexes as (
    select distinct w.oid, k.names
    from wanted w join pg_index i on i.indrelid = w.oid
    join pg_class x on x.oid = i.indexrelid
    join pg_am m on m.oid = x.relam and m.amname = 'btree'
    cross join lateral (
        select array_agg(a.attname::text order by part.position) as names, bool_and(o.opcdefault) as is_plain
        from unnest(i.indkey::smallint[], i.indclass::oid[]) with ordinality as part(number, class_id, position)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
        join pg_opclass o on o.oid = part.class_id
        where part.position <= i.indnkeyatts) k
    where i.indisvalid and i.indpred is null and 0 <> all (i.indkey::smallint[]) and k.is_plain
), published as (
    select w.oid, exists (select from publication p, pg_get_publication_tables(p.pubname::text) g where g.relid = w.oid) as is_published,
        -- who may publish a table owns it; a standby publishes nothing
        not pg_is_in_recovery() and pg_has_role(w.relowner, 'USAGE') and coalesce((select p.is_ours from publication p),
            has_database_privilege(current_database(), 'CREATE')) as may_publish
    from wanted w
)
select w.nspname::text as schema, w.relname::text as name, jsonb_build_object(
    'relation', w.oid::bigint, 'kind', w.relkind, 'gap', null,
    'is_filtered', row_security_active(w.oid),
    'may_read', has_schema_privilege(w.schema_id, 'USAGE') and has_table_privilege(w.oid, 'SELECT'),
    'identity', to_jsonb(p.identity), 'is_full', w.relreplident = 'f',
    'is_published', u.is_published, 'may_publish', u.may_publish,
    'columns', (
        select coalesce(jsonb_agg(jsonb_build_object('name', b.attname, 'number', b.attnum, 'type', format_type(b.base, b.modifier),
            'collation_schema', n.nspname, 'collation_name', l.collname, 'is_never_null', b.is_never_null,
            'type_id', b.atttypid::bigint,
            'is_logged', b.attgenerated = '' or b.attgenerated = 's' and (
                select l.generated = 's' from publication l) is not false
                and current_setting('server_version_num')::integer >= 180000) order by b.attnum), '[]')
        from based b left join pg_collation l on l.oid = b.attcollation left join pg_namespace n on n.oid = l.collnamespace
        where b.attrelid = w.oid),
    'keys', (
        select coalesce(jsonb_agg(to_jsonb(k.names) order by k.is_identity desc nulls last, k.indisprimary desc, k.indexrelid), '[]')
        from keys k where k.oid = w.oid),
    'indexes', (select coalesce(jsonb_agg(to_jsonb(i.names) order by i.names), '[]') from indexes i where i.oid = w.oid),
    'version', md5(concat_ws('|',
        (select string_agg(concat_ws(' ', q.oid, q.relkind, q.relpersistence, q.relfilenode, q.relreplident, q.reltablespace,
            q.identity), ',' order by q.oid) from parts q where q.root = w.oid),
        (select string_agg(concat_ws(' ', h.inhrelid, h.inhparent, h.xmin), ',' order by h.inhrelid) from pg_inherits h
            where h.inhparent in (select t.id from tree t where t.root = w.oid)),
        (select concat_ws(' ', l.oid, l.written_by) from publication l where u.is_published),
        (select string_agg(concat_ws(' ', r.oid, r.xmin), ',' order by r.oid) from publication l join pg_publication_rel r
            on r.prpubid = l.oid where r.prrelid in (select t.id from tree t where t.root = w.oid
                union select a.id from above a where a.leaf = w.oid)))),
    'obstacle', o.obstacle, 'remedy', o.remedy)
from wanted w
join parts p on p.root = w.oid and p.oid = w.oid
join published u on u.oid = w.oid
left join lateral (
    select f.obstacle, f.remedy from (
        (select 1, format('%%s is %%s', q.full_name, case when q.relkind = 'f' then 'a foreign table' else 'not in the log' end), null
        from parts q where q.root = w.oid and (q.relkind not in ('r', 'p') or q.relpersistence <> 'p') limit 1)
        union all
        select 2, 'other tables inherit from it', null
        where w.relkind = 'r' and exists (select from pg_inherits h where h.inhparent = w.oid)
        union all
        -- before it is published: PostgreSQL refuses to update a published table without a replica identity
        select 3, format('%%s has no replica identity that tells which row was changed', min(q.full_name)),
            string_agg(format('alter table %%s replica identity full', q.full_name), '; ' order by q.full_name)
        from parts q where q.root = w.oid and q.identity is null and (q.relkind = 'r' or q.oid = w.oid)
        having count(*) > 0
        union all
        select 4, format('the replica identity of %%s is not that of %%s', min(q.full_name), w.full_name),
            string_agg(format('alter table %%s replica identity full', q.full_name), '; ' order by q.full_name)
        from parts q where q.root = w.oid and q.relkind = 'r' and not p.identity <@ q.identity
        having count(*) > 0
        union all
        -- the same goes for a replica identity that contains what is not published
        (select 5, format('the replica identity of %%s contains the generated column %%I, which is not in the log', q.full_name, a.attname),
            case a.attgenerated when 's' then format('alter publication %%I set (publish_generated_columns = stored)', %(publication)s::text) end
        from parts q join pg_attribute a on a.attrelid = q.oid and a.attnum > 0 and not a.attisdropped and a.attname = any (q.identity)
        where q.root = w.oid and q.relkind = 'r' and not u.is_published and current_setting('server_version_num')::integer >= 180000
            and (a.attgenerated = 'v' or a.attgenerated = 's' and exists (select from publication l where l.generated <> 's'))
        order by q.full_name, a.attnum limit 1)
        union all
        select 5, format('it is published as a part of %%s', g.relid::regclass), null
        from publication l, pg_get_publication_tables(l.pubname::text) g
        where not u.is_published and g.relid in (select a.id from above a where a.leaf = w.oid)
        union all
        select 6, format('it is not in the publication %%s%%s', quote_ident(%(publication)s),
                case when pg_is_in_recovery() then ', and this server is a standby' else '' end),
            case when exists (select from publication) then format('alter publication %%I add table %%s', %(publication)s::text, w.full_name)
                else format('create publication %%I for table %%s with (publish_via_partition_root = true%%s)',
                    %(publication)s::text, w.full_name, case when current_setting('server_version_num')::integer >= 180000
                        then ', publish_generated_columns = stored' else '' end) end
        where not u.is_published and not u.may_publish
        union all
        select 7, format('the publication %%s does not have all kinds of changes', quote_ident(l.pubname)),
            format('alter publication %%I set (publish = %%L)', l.pubname, 'insert, update, delete, truncate')
        from publication l where not (l.pubinsert and l.pubupdate and l.pubdelete and l.pubtruncate)
        union all
        select 4, format('the publication %%s has the changes of partitions, not of %%s', quote_ident(l.pubname), w.full_name),
            format('alter publication %%I set (publish_via_partition_root = true)', l.pubname)
        from publication l where not l.pubviaroot and w.relkind = 'p'
        union all
        (select 8, format('the publication %%s has only some of its rows or columns', quote_ident(l.pubname)),
            format('alter publication %%I drop table %%s; alter publication %%I add table %%s', l.pubname, w.full_name, l.pubname, w.full_name)
        from publication l join pg_publication_rel r on r.prpubid = l.oid
        where r.prrelid in (select t.id from tree t where t.root = w.oid union select a.id from above a where a.leaf = w.oid)
            and (to_jsonb(r) ->> 'prattrs' is not null or to_jsonb(r) ->> 'prqual' is not null) limit 1)
    ) f(place, obstacle, remedy)
    order by f.place limit 1
) o on true
