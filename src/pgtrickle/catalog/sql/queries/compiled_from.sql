-- compiled_from: what compiling the query of a stream table depends on, besides its catalog row: the database, the
-- dependencies, functions that are found by name, and everything that describe_relations and describe_columns
-- return for the sources, in a raw form that is quick to read.
-- Parameter: the id of the stream table.  Locks: nothing.
with captured as (
    select d.source_relid as id, case when c.relkind in ('m', 'f') or d.source_type = 'attached_table'
        then to_regclass(pgtrickle_internal.copy_of(d.source_relid))::oid end as copy
    from pgtrickle.pgt_dependencies d left join pg_class c on c.oid = d.source_relid
    where d.pgt_id = %(id)s and d.source_type not in ('view', 'function')
)
select g.installation || '-' || (select oid from pg_database where datname = current_database()) as database,
    jsonb_build_array(
        current_setting('server_version_num')::integer / 10000,
        (select jsonb_agg(jsonb_build_array(d.source_type, d.source_relid::bigint, d.source_schema, d.source_name,
                d.columns_used, d.schema_fingerprint) order by d.source_type, d.source_relid)
            from pgtrickle.pgt_dependencies d where d.pgt_id = %(id)s),
        (select jsonb_agg(distinct jsonb_build_array(p.pronamespace::regnamespace::text, lower(p.proname), p.prokind,
                p.proretset))
            from pg_proc p where p.oid >= 16384 and (p.prokind = 'a' or p.proretset)),
        (select jsonb_agg(jsonb_build_array(c.oid::bigint, n.nspname, c.relname, c.relkind, row_security_active(c.oid),
                exists (select from pg_inherits h where h.inhparent = c.oid),
                exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = c.oid),
                s.copy::bigint) order by c.oid)
            from captured s join pg_class c on c.oid = s.id join pg_namespace n on n.oid = c.relnamespace),
        (select jsonb_agg(jsonb_build_array(a.attrelid::bigint, a.attnum, a.attname, a.atttypid::bigint, a.atttypmod,
                a.attcollation::bigint, a.attnotnull) order by a.attrelid, a.attnum)
            from pg_attribute a join captured s on a.attrelid = s.id
            where a.attnum > 0 and not a.attisdropped),
        (select jsonb_agg(jsonb_build_array(a.attrelid::bigint, a.attname) order by a.attrelid, a.attname)
            from captured s join pg_attribute a on a.attrelid = s.id and a.attnum > 0 and a.attnotnull
            where not a.attisdropped and not pgtrickle_internal.is_never_null(a.attrelid, a.attname)),
        (select jsonb_agg(jsonb_build_array(i.indexrelid::bigint, i.indrelid::bigint, i.indkey::text, i.indnkeyatts,
                i.indclass::text, i.indcollation::text,
                i.indisprimary, i.indisunique, i.indisvalid, i.indimmediate, i.indpred is null,
                pg_get_expr(i.indexprs, i.indrelid), x.relam::bigint) order by i.indexrelid)
            from pg_index i join pg_class x on x.oid = i.indexrelid
            where i.indrelid in (select id from captured union all select copy from captured)))::text as text
from pgtrickle.pgt_caches g
