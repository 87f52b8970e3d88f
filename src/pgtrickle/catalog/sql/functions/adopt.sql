-- adopt: turn a materialized view into a stream table, in the caller's transaction, as its owner. Readers see the
-- materialized view until the caller commits, and the stream table with the same rows from then on.

-- materialized_view: the materialized view of that name. Runs under the caller's search_path.
create or replace function pgtrickle_internal.materialized_view(given text) returns oid
language plpgsql stable
as $$
declare
    printed_name text := (
        select pg_catalog.string_agg(pg_catalog.quote_ident(part), '.' order by number)
        from pg_catalog.unnest(pgtrickle_internal.name_parts(given)) with ordinality as p(part, number));
    found_id pg_catalog.oid := pg_catalog.to_regclass(printed_name);
    kind "char" := (select c.relkind from pg_catalog.pg_class c where c.oid operator(pg_catalog.=) found_id);
begin
    if found_id is null then
        raise exception '%', pg_catalog.format('there is no materialized view %s', given) using
            errcode = 'undefined_table', hint = 'If its schema is not in the search_path, write schema.name.';
    elsif kind operator(pg_catalog.<>) 'm' then
        raise exception '%', pg_catalog.format('%s is not a materialized view', given) using
            errcode = 'wrong_object_type',
            hint = case when exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid operator(pg_catalog.=) found_id)
                    then 'It is a stream table already.'
                when kind operator(pg_catalog.=) 'v' then 'A view holds no rows. Give its query to pgtrickle.create_stream_table.'
                else 'Only materialized views can be adopted. Give a query to pgtrickle.create_stream_table.' end;
    end if;
    return found_id;
end
$$;

-- check_adoptable: refuse a materialized view that the caller cannot adopt, whatever its query is.
create or replace function pgtrickle_internal.check_adoptable(relation_id oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    found record;
begin
    select pgtrickle_internal.printed(c.oid) as printed, n.nspname, c.relispopulated, pg_get_userbyid(c.relowner) as owner into found
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation_id;
    if found.owner <> current_user then
        raise exception '%', format('you must own materialized view %s to adopt it', found.printed) using
            errcode = 'insufficient_privilege',
            hint = format('The stream table keeps the owner. Connect as %1$I, or run: set role %1$I.', found.owner);
    elsif not found.relispopulated then
        raise exception '%', format('materialized view %s has not been populated', found.printed) using
            errcode = 'object_not_in_prerequisite_state', hint = format('Run: refresh materialized view %s.', found.printed);
    end if;
    perform pgtrickle_internal.check_schema(found.nspname);
    perform pgtrickle_internal.check_schema_rights(found.nspname);
end
$$;

-- columns_named: the names of the columns of a relation, in order.
create or replace function pgtrickle_internal.columns_named(relation_id oid) returns name[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select array_agg(a.attname order by a.attnum) from pg_attribute a
    where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped
$$;

-- adoption_parts: what is attached to a materialized view and what becomes of it. Refuses like adopt_materialized_view,
-- except for what is listed.
create or replace function pgtrickle_internal.adoption_parts(name text) returns table (fate text, part text, reason text)
language plpgsql stable
as $$
declare
    relation_id pg_catalog.oid := pgtrickle_internal.materialized_view(name);
begin
    perform pgtrickle_internal.check_adoptable(relation_id);
    return query select p.* from pgtrickle_internal.carried_parts(relation_id, pgtrickle_internal.columns_named(relation_id)) p
        order by p.fate, p.part;
end
$$;

-- adopt_materialized_view: the whole change. The first refresh brings the rows up to date.
create or replace function pgtrickle.adopt_materialized_view(
    name text, schedule text default 'calculated', refresh_mode text default 'AUTO',
    diamond_consistency text default null, diamond_schedule_policy text default null, cdc_mode text default null,
    append_only boolean default false, pooler_compatibility_mode boolean default false,
    tier text default null, refresh_timeout text default null, on_divergence text default null,
    keep_changes text default null, auxiliary_results text default null
) returns void
language plpgsql
as $$
declare
    asked jsonb := pgtrickle_internal.options(schedule, refresh_mode, true, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, tier, refresh_timeout,
        on_divergence, keep_changes, auxiliary_results);
    relation_id pg_catalog.oid := pgtrickle_internal.materialized_view(name);
    query_view pg_catalog.oid;
    replacement pg_catalog.oid;
    parts text[];
    later text[];
begin
    perform pgtrickle_internal.check_not_copy();
    perform pgtrickle_internal.check_adoptable(relation_id);
    perform pgtrickle_internal.keep_unchanged(relation_id);
    query_view := pgtrickle_internal.view_of(pgtrickle_internal.canonical_of(relation_id));
    perform pgtrickle_internal.check_same_meaning(relation_id, query_view);
    perform pgtrickle_internal.refuse_breaking(relation_id, pgtrickle_internal.columns_named(relation_id), 'adopt');
    perform pgtrickle_internal.check_candidate(query_view);
    replacement := pgtrickle_internal.build_replacement(relation_id, relation_id);
    perform pgtrickle_internal.equip_storage(replacement);
    perform pgtrickle_internal.create_row_index(replacement);
    parts := pgtrickle_internal.carried_statements(relation_id, replacement, false);
    later := pgtrickle_internal.carried_statements(relation_id, replacement, true);
    perform pgtrickle_internal.hold_readers(replacement, relation_id);
    perform pgtrickle_internal.enable_always_for(pgtrickle_internal.register_adopted(
        query_view, replacement, relation_id, asked, pg_catalog.current_schemas(false)));
    perform pgtrickle_internal.drop_view(query_view);
    perform pgtrickle_internal.put_in_place(relation_id, replacement, parts);
    perform pgtrickle_internal.note_name(replacement);
    perform pgtrickle_internal.finish_replacement(relation_id, replacement, later);
end
$$;
comment on function pgtrickle.adopt_materialized_view(text, text, text, text, text, text, boolean, boolean, text, text, text, text, text) is
    E'Turn a materialized view into a stream table with the same name, rows, indexes, grants, comments and '
    'dependent views. Call it with SELECT. You must own the materialized view. Readers wait only for a '
    'moment; the rows are copied before that. The first refresh brings the rows up to date.\n'
    '\nname: The materialized view. Without a schema, it is looked up along your search_path.';

-- keep_unchanged: let nobody refresh a materialized view or create an index on it before the transaction ends. Readers
-- do not notice. PostgreSQL has no LOCK for materialized views, but a comment takes the same lock.
create or replace function pgtrickle_internal.keep_unchanged(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('comment on materialized view %s is %s', pgtrickle_internal.printed(relation_id),
        coalesce(quote_literal(obj_description(relation_id, 'pg_class')), 'null'));
end
$$;

-- check_same_meaning: refuse a materialized view whose printed text has another meaning.
create or replace function pgtrickle_internal.check_same_meaning(relation_id oid, query_view oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_text(query_view);
    if pgtrickle_internal.unprinted(relation_id) <> pgtrickle_internal.unprinted(query_view)
        or pgtrickle_internal.shape_of(relation_id) <> pgtrickle_internal.shape_of(query_view)
    then
        raise exception '%', format('the query of %s means more than its text says when PostgreSQL prints it',
                pgtrickle_internal.printed(relation_id)) using
            errcode = 'feature_not_supported',
            hint = 'Create a stream table from the query as you wrote it: pgtrickle.create_stream_table(name, query).';
    end if;
end
$$;

-- hold_readers: wait for running refreshes of the stream tables that read a materialized view, and let no other start
-- before this transaction ends. The owner of the materialized view has just created the table that replaces it.
create or replace function pgtrickle_internal.hold_readers(replacement oid, adopted oid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_ownership(replacement);
    perform pgtrickle_internal.check_adopted(replacement, adopted);
    perform from pgtrickle.pgt_stream_tables s
    where s.pgt_id in (select d.pgt_id from pgtrickle.pgt_dependencies d
        where d.source_relid = adopted and d.source_type not in ('view', 'function'))
    order by s.pgt_id for update;
end
$$;

-- check_adopted: refuse unless one role owns a materialized view and the table that replaces it.
create or replace function pgtrickle_internal.check_adopted(replacement oid, adopted oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from pg_class m join pg_class t on t.relowner = m.relowner
        where m.oid = adopted and m.relkind = 'm' and t.oid = replacement and t.relkind = 'r')
    then
        raise exception 'the table does not replace that materialized view' using errcode = 'insufficient_privilege',
            hint = 'This function is internal. Use pgtrickle.adopt_materialized_view(name).';
    end if;
end
$$;

-- register_adopted: record a table that takes the place of a materialized view as a stream table. Its rows may be older
-- than the sources, so the first refresh compares all of them.
create or replace function pgtrickle_internal.register_adopted(
    query_view oid, relation_id oid, adopted oid, options jsonb, path name[]
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    id bigint;
begin
    perform pgtrickle_internal.check_ownership(relation_id);
    perform pgtrickle_internal.check_view(query_view, relation_id);
    perform pgtrickle_internal.check_adopted(relation_id, adopted);
    id := pgtrickle_internal.record_table(query_view, relation_id, options, path);
    update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = 'it was a materialized view'
    where s.pgt_id = id;
    perform pgtrickle_internal.rebind_readers(adopted, relation_id);
    return id;
end
$$;
