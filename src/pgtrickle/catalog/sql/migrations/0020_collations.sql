-- 0020_collations: the state of a stream table keeps the collations of its values, and values of extension types are
-- compared by their own operators. What was kept for stream tables with such values may be wrong: they are reloaded.

do $$
declare
    stale record;
begin
    for stale in
        update pgtrickle.pgt_stream_tables s set needs_reinit = true,
            reinit_reason = 'an upgrade changed how values with a collation, or of an extension type, are compared'
        where s.defining_query ~* '\mcollate\M' or exists (
            select from pgtrickle.pgt_dependencies d
            join pg_catalog.pg_attribute a on a.attrelid = d.source_relid and a.attnum > 0 and not a.attisdropped
            join pg_catalog.pg_type t on t.oid = a.atttypid
            where d.pgt_id = s.pgt_id and (t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
                or a.attcollation not in (0, 'pg_catalog."default"'::pg_catalog.regcollation)))
        returning s.pgt_id
    loop
        execute pg_catalog.format('drop table if exists pgtrickle_state.state_%s, pgtrickle_state.horizon_%s',
            stale.pgt_id, stale.pgt_id);
    end loop;
end
$$;
