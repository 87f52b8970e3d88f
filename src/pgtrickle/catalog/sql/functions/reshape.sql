-- reshape: give a stream table a query with other columns. The new rows are computed before anybody has to wait; then
-- a table that holds them takes the place of the old one, in the caller's transaction.

-- reshape: the whole change, as the owner, who has proved ownership of the table. That also locked it against other
-- changes of its definition.
create or replace function pgtrickle_internal.reshape(id bigint, relation_id oid, query_view oid) returns void
language plpgsql
as $$
declare
    kept pg_catalog.name[] := pgtrickle_internal.kept_columns(relation_id, query_view);
    replacement pg_catalog.oid;
    parts text[];
    later text[];
begin
    perform pgtrickle_internal.check_columns(query_view);
    perform pgtrickle_internal.check_reads_not(query_view, relation_id);
    perform pgtrickle_internal.refuse_breaking(relation_id, kept, 'give other columns to');
    perform pgtrickle_internal.tell_losses(relation_id, kept);
    perform pgtrickle_internal.warn_subscribers(relation_id);
    -- refused queries are not evaluated
    perform pgtrickle_internal.check_candidate(query_view);
    replacement := pgtrickle_internal.build_replacement(relation_id, query_view);
    perform pgtrickle_internal.equip_storage(replacement);
    perform pgtrickle_internal.create_row_index(replacement);
    parts := pgtrickle_internal.carried_statements(relation_id, replacement, false);
    later := pgtrickle_internal.carried_statements(relation_id, replacement, true);
    -- a refresh that runs must end before readers have to wait for us
    perform pgtrickle_internal.hold_table(relation_id);
    perform pgtrickle_internal.prove_ownership(relation_id);
    perform pgtrickle_internal.replace_table(relation_id, replacement, query_view, pg_catalog.current_schemas(false));
    perform pgtrickle_internal.enable_always_for(id);
    perform pgtrickle_internal.put_in_place(relation_id, replacement, parts);
    perform pgtrickle_internal.note_name(replacement);
    perform pgtrickle_internal.finish_replacement(relation_id, replacement, later);
    -- the index that identified its rows may be lost
    perform pgtrickle_internal.identify_published_rows(replacement);
end
$$;

-- check_reads_not: refuse a query that reads the stream table that it is for.
create or replace function pgtrickle_internal.check_reads_not(query_view oid, relation_id oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pgtrickle_internal.relations_of(query_view, 0) r where r.relation_id = check_reads_not.relation_id) then
        raise exception '%', format('stream table %s would read itself', pgtrickle_internal.printed(relation_id)) using
            errcode = 'invalid_recursion',
            hint = 'Change the query so that it no longer reads a stream table that reads this one.';
    end if;
end
$$;

-- check_candidate: refuse a query that cannot define a stream table, before its rows are computed. The query is that
-- of a temporary view of the session, and is checked with the rights of its owner.
create or replace function pgtrickle_internal.check_candidate(query_view oid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    reader oid := (select c.relowner from pg_class c
        where c.oid = query_view and c.relkind = 'v' and c.relnamespace = pg_my_temp_schema());
begin
    if reader is null then
        raise exception 'the view is not a query of this session' using errcode = 'insufficient_privilege',
            hint = 'This function is internal. Use pgtrickle.alter_stream_table(name, query).';
    end if;
    perform pgtrickle_internal.check_query(query_view, reader);
end
$$;

-- hold_table: wait for running refreshes of a stream table and of those that read it, and let no other start before
-- this transaction ends.
create or replace function pgtrickle_internal.hold_table(relation_id oid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    -- always in the same order, to avoid deadlocks
    perform from pgtrickle.pgt_stream_tables s
    where s.pgt_relid = relation_id or s.pgt_id in (
        select d.pgt_id from pgtrickle.pgt_dependencies d
        where d.source_relid = relation_id and d.source_type not in ('view', 'function'))
    order by s.pgt_id for update;
end
$$;

-- replace_table: let a stream table have another table, which gets its name afterwards, and another query.
create or replace function pgtrickle_internal.replace_table(old oid, replacement oid, query_view oid, path name[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    id bigint := (select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_relid = old);
begin
    perform pgtrickle_internal.check_ownership(old);
    perform pgtrickle_internal.check_ownership(replacement);
    perform pgtrickle_internal.check_view(query_view, replacement);
    if id is null or exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = replacement)
        or (select c.relowner from pg_class c where c.oid = old) <> (select c.relowner from pg_class c where c.oid = replacement)
    then
        raise exception 'the tables are not those of one stream table' using errcode = 'insufficient_privilege',
            hint = 'This function is internal. Use pgtrickle.alter_stream_table(name, query).';
    end if;
    perform pgtrickle_internal.bind_table(id, replacement);
    perform pgtrickle_internal.rebind_readers(old, replacement);
    perform pgtrickle_internal.store_query(id, query_view, path);
end
$$;

-- rebind_readers: bind the stream tables that read a relation to the table that gets its name in this transaction. Before
-- their next refresh, the sidecar analyses their queries again. Runs as the sidecar's role.
create or replace function pgtrickle_internal.rebind_readers(old oid, replacement oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    printed text := pgtrickle_internal.printed(old);
    readers bigint[] := array(
        select distinct d.pgt_id from pgtrickle.pgt_dependencies d
        where d.source_relid = old and d.source_type not in ('view', 'function'));
begin
    update pgtrickle.pgt_gates g set source_relid = replacement where g.source_relid = old;
    delete from pgtrickle.pgt_waiting w where w.source_relid = old;
    update pgtrickle.pgt_dependencies d set source_relid = replacement, source_type = 'stream_table', cdc_mode = 'trigger',
        -- it gets that name soon
        schema_fingerprint = (pgtrickle_internal.fingerprint('stream_table', replacement, array(
            select a.attnum from pg_attribute a where a.attrelid = replacement and a.attname = any (d.columns_used)))
            || jsonb_build_object('name', printed))::text
    where d.source_relid = old and d.source_type not in ('view', 'function');
    update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = format('%s was replaced', printed),
        ground_error = coalesce(s.ground_error, format('it is bound to the table that %s had before', printed))
    where s.pgt_id = any (readers);
    delete from pgtrickle.pgt_compiled c where c.pgt_id = any (readers);
    perform pgtrickle_internal.raise_generation(reader) from unnest(readers) reader;
end
$$;

-- note_name: record the name that the table of a stream table has now. Everybody may call it: it only records what is.
create or replace function pgtrickle_internal.note_name(relation_id oid) returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_stream_tables s set pgt_schema = n.nspname, pgt_name = c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where s.pgt_relid = relation_id and c.oid = relation_id and not pgtrickle.is_copy();
    update pgtrickle.pgt_ground g set name = pgtrickle_internal.printed(relation_id)
    where g.object_id = relation_id and g.kind = 'itself' and pgtrickle_internal.printed(relation_id) is not null;
$$;
