-- compiled_from: what compiling the query of a stream table depends on, beside the catalog row itself and
-- what its sources look like now: where we are, the dependencies, and functions that are looked for by name.
-- Parameter: the id of the stream table. Locks: nothing.
select c.installation || '-' || (select oid from pg_database where datname = current_database()),
    jsonb_build_array(
        current_setting('server_version_num')::integer / 10000,
        (select jsonb_agg(jsonb_build_array(d.source_type, d.source_relid::bigint, d.source_schema, d.source_name,
                d.columns_used, d.schema_fingerprint) order by d.source_type, d.source_relid)
            from pgtrickle.pgt_dependencies d where d.pgt_id = %(id)s),
        (select jsonb_agg(distinct jsonb_build_array(lower(p.proname), p.prokind, p.proretset))
            from pg_proc p where p.oid >= 16384 and (p.prokind = 'a' or p.proretset)))::text
from pgtrickle.pgt_caches c
