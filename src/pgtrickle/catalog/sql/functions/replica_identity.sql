-- replica_identity: how PostgreSQL tells subscribers which row was updated or deleted. It refuses to update and delete rows
-- of a published table that has no replica identity, so a stream table without one could not be refreshed.

-- has_replica_identity: whether PostgreSQL can tell subscribers which row of a table was updated or deleted.
create or replace function pgtrickle_internal.has_replica_identity(relation_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.relreplident = 'f' or exists (
        select from pg_index i where i.indrelid = c.oid and i.indisvalid and i.indimmediate
            and (c.relreplident = 'd' and i.indisprimary or c.relreplident = 'i' and i.indisreplident))
    from pg_class c where c.oid = relation_id
$$;

-- has_equality: whether a subscriber can compare values of a type, which it does to find a row by all of its columns.
create or replace function pgtrickle_internal.has_equality(type_id oid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    t pg_type;
begin
    select * into strict t from pg_type where oid = pgtrickle_internal.base_type(type_id);
    if t.typtype in ('e', 'r', 'm') then
        return true;
    elsif t.typtype = 'c' then
        return (select coalesce(bool_and(pgtrickle_internal.has_equality(a.atttypid)), true)
            from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped);
    elsif t.typcategory = 'A' and t.typelem <> 0 then
        return pgtrickle_internal.has_equality(t.typelem);
    end if;
    return exists (
        select from pg_opclass o join pg_am m on m.oid = o.opcmethod and m.amname in ('btree', 'hash')
        where o.opcdefault and (o.opcintype = t.oid or o.opcintype in (
            select k.casttarget from pg_cast k where k.castsource = t.oid and k.castmethod = 'b' and k.castcontext = 'i')));
end
$$;

-- identify_rows: give a table a replica identity if it has none. Runs as the owner of the table.
create or replace function pgtrickle_internal.identify_rows(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if not pgtrickle_internal.has_replica_identity(relation_id) then
        -- readers do not have to queue behind us
        perform pgtrickle_internal.lock_soon(relation_id);
        execute format('alter table %s replica identity full', pgtrickle_internal.printed(relation_id));
    end if;
end
$$;

-- identify_published_rows: the same for a table that updates and deletes are already published of. Runs as the owner.
create or replace function pgtrickle_internal.identify_published_rows(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pgtrickle_internal.published_tables p
        where p.relation_id = identify_published_rows.relation_id and p.publishes_removals)
    then
        perform pgtrickle_internal.identify_rows(relation_id);
    end if;
end
$$;

-- identify_state: the same for the tables that hold the state of a stream table, which a publication of all tables includes.
-- Runs as the sidecar's role, which owns them.
create or replace function pgtrickle_internal.identify_state(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pg_publication) then
        perform pgtrickle_internal.identify_published_rows(c.oid) from pg_class c
        where c.relnamespace = 'pgtrickle_state'::regnamespace and c.relkind = 'r' and c.relname ~ format('^[a-z]+_%s(_[0-9]+)?$', id);
    end if;
end
$$;

-- unidentified_tables: the stream tables, and tables of pgtrickle itself, that refreshes cannot write because they are
-- published and have no replica identity. In change buffers nothing is updated or deleted.
create or replace function pgtrickle_internal.unidentified_tables() returns table (relation_id oid)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select distinct p.relation_id
    from pgtrickle_internal.published_tables p join pg_class c on c.oid = p.relation_id
    where p.publishes_removals and not pgtrickle.is_copy()
        and (c.relnamespace in ('pgtrickle'::regnamespace, 'pgtrickle_state'::regnamespace)
            or c.oid in (select s.pgt_relid from pgtrickle.pgt_stream_tables s))
        and not pgtrickle_internal.has_replica_identity(c.oid)
$$;

-- identify_unidentified: give these tables a replica identity, as far as the sidecar's role may. Returns how many.
create or replace function pgtrickle_internal.identify_unidentified() returns bigint
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
    unidentified oid;
    done bigint := 0;
begin
    for unidentified in
        select u.relation_id from pgtrickle_internal.unidentified_tables() u join pg_class c on c.oid = u.relation_id
        where pg_has_role(c.relowner, 'USAGE') order by 1
    loop
        begin
            perform pgtrickle_internal.identify_rows(unidentified);
            done := done + 1;
        exception when lock_not_available then
            null; -- the next round tries again
        end;
    end loop;
    return done;
end
$$;
