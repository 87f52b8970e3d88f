-- publications: publish stream tables by logical replication, in the transaction of the caller and with the rights of
-- the caller.

-- publication_comment: the comment by which a publication that stream_table_to_publication created is recognised. It
-- survives a rename, a dump and a restore.
create or replace function pgtrickle_internal.publication_comment() returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select 'Created by pgtrickle for a stream table.' $$;

-- published_tables: the tables of each publication, whether it names them, their schema, or all tables.
create or replace view pgtrickle_internal.published_tables as
select c.oid as relation_id, p.pubname as publication, p.pubupdate or p.pubdelete as publishes_removals,
    coalesce(pg_catalog.obj_description(p.oid, 'pg_publication') = pgtrickle_internal.publication_comment(), false)
        and exists (select from pg_catalog.pg_publication_rel r where r.prpubid = p.oid and r.prrelid = c.oid) as is_made_by_us
from pg_catalog.pg_publication p
join pg_catalog.pg_publication_tables t on t.pubname = p.pubname
join pg_catalog.pg_namespace n on n.nspname = t.schemaname
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.tablename;

-- own_publication: the publication that stream_table_to_publication created for a table; null if there is none.
create or replace function pgtrickle_internal.own_publication(relation_id oid) returns name
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select p.publication from pgtrickle_internal.published_tables p
    where p.relation_id = own_publication.relation_id and p.is_made_by_us order by 1 limit 1
$$;

-- check_may_publish: refuse callers who cannot create a publication for a stream table.
create or replace function pgtrickle_internal.check_may_publish(relation_id oid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    owner_id oid := (select c.relowner from pg_class c where c.oid = relation_id);
begin
    if not pg_has_role(owner_id, 'USAGE') then
        raise exception '%', format('you must own stream table %s to publish it', pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege', hint = format('Its owner is %I.', pg_get_userbyid(owner_id));
    elsif not has_database_privilege(current_database(), 'CREATE') then
        raise exception '%', format('you may not create publications in database %I', current_database()) using
            errcode = 'insufficient_privilege',
            hint = format('grant create on database %I to %I', current_database(), current_user);
    end if;
end
$$;

-- publication_name: the name for a new publication: the one that is asked for, or one that tells the stream table.
create or replace function pgtrickle_internal.publication_name(relation_id oid, asked text) returns name
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    table_name text := (select c.relname from pg_class c where c.oid = relation_id);
    chosen text := asked;
begin
    if asked is null then
        while octet_length('pgt_pub_' || table_name) > 63 loop
            table_name := left(table_name, -1);
        end loop;
        chosen := 'pgt_pub_' || table_name;
    elsif asked = '' or octet_length(asked) > 63 then
        raise exception '%', format('%L is not the name of a publication', asked) using
            errcode = 'invalid_name', hint = 'A name has 1 to 63 bytes. Without one, pgtrickle chooses it.';
    end if;
    if exists (select from pg_publication p where p.pubname = chosen) then
        raise exception '%', format('publication %I already exists', chosen) using
            errcode = 'invalid_parameter_value',
            hint = format('Give another name, as in publication => %L. To publish the stream table by that publication, run '
                'alter table %2$s replica identity full; alter publication %3$I add table %2$s.',
                left(chosen, 61) || '_2', pgtrickle_internal.printed(relation_id), chosen);
    end if;
    return chosen;
end
$$;

-- create_publication: create the publication. PostgreSQL's own warning about wal_level is replaced by ours.
create or replace function pgtrickle_internal.create_publication(relation_id oid, chosen name) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = 'error'
as $$
begin
    execute format('create publication %I for table %s', chosen, pgtrickle_internal.printed(relation_id));
    execute format('comment on publication %I is %L', chosen, pgtrickle_internal.publication_comment());
end
$$;

-- warn_about_publishing: say what keeps subscribers from receiving the changes of a published table.
create or replace function pgtrickle_internal.warn_about_publishing(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    incomparable text := (
        select string_agg(format('%I (%s)', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where a.attrelid = relation_id and a.attnum > 0 and not a.attisdropped and c.relreplident = 'f'
            and not pgtrickle_internal.has_equality(a.atttypid));
begin
    if current_setting('wal_level') <> 'logical' then
        raise warning '%', format('nothing can subscribe to %s yet: wal_level is %s', pgtrickle_internal.printed(relation_id),
            current_setting('wal_level')) using
            hint = 'Run alter system set wal_level = ''logical'', and restart the server.';
    elsif current_setting('max_replication_slots')::integer = 0 or current_setting('max_wal_senders')::integer = 0 then
        raise warning '%', format('nothing can subscribe to %s yet: max_replication_slots is %s and max_wal_senders is %s',
            pgtrickle_internal.printed(relation_id), current_setting('max_replication_slots'), current_setting('max_wal_senders')) using
            hint = 'Raise both, and restart the server.';
    end if;
    if incomparable is not null then
        raise warning '%', format('subscribers cannot apply updates and deletes of %s: its rows are identified by all of their '
            'columns, and values of %s cannot be compared', pgtrickle_internal.printed(relation_id), incomparable) using
            hint = 'Cast these columns in the query, for example json to jsonb. Or create a unique index on columns that are not '
                'null, and run alter table ... replica identity using index.';
    end if;
end
$$;

-- warn_subscribers: say what the subscribers of a stream table miss if another table takes its place.
create or replace function pgtrickle_internal.warn_subscribers(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    publications text := (select string_agg(quote_ident(p.publication), ', ' order by p.publication)
        from pgtrickle_internal.published_tables p where p.relation_id = warn_subscribers.relation_id);
begin
    if publications is not null then
        raise warning '%', format('subscribers do not receive the new columns and rows of %s, which stays in publication %s',
            pgtrickle_internal.printed(relation_id), publications) using
            hint = 'Where somebody subscribes: drop the subscription, give the table the new columns, empty it, and create the '
                'subscription again.';
    end if;
end
$$;

-- stream_table_to_publication: publish a stream table. Safe to run again.
create or replace function pgtrickle.stream_table_to_publication(name text, publication text default null) returns text
language plpgsql
as $$
begin
    return pgtrickle_internal.publish(pgtrickle_internal.stream_table(name), publication);
end
$$;
comment on function pgtrickle.stream_table_to_publication(text, text) is
    E'Create a publication for logical replication of a stream table, and return its name. Subscribers receive the rows that '
    'each refresh inserts, updates and deletes. If the table has no primary key, its replica identity becomes FULL. Safe to '
    'run again. Call it with SELECT. You must own the stream table and need CREATE on the database.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\npublication: The name of the publication; null for pgt_pub_ and the name of the stream table.';

create or replace function pgtrickle_internal.publish(id bigint, asked text) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
    chosen name := pgtrickle_internal.own_publication(relation_id);
    is_new boolean := chosen is null;
begin
    perform pgtrickle_internal.check_may_publish(relation_id);
    if is_new then
        chosen := pgtrickle_internal.publication_name(relation_id, asked);
    elsif asked <> chosen then
        raise exception '%', format('stream table %s is already published by %I', pgtrickle_internal.printed(relation_id), chosen) using
            errcode = 'object_not_in_prerequisite_state',
            hint = format('To rename it, run alter publication %I rename to %I.', chosen, asked);
    else
        raise notice '%', format('stream table %s is already published by %I', pgtrickle_internal.printed(relation_id), chosen);
    end if;
    perform pgtrickle_internal.identify_rows(relation_id);
    if is_new then
        perform pgtrickle_internal.create_publication(relation_id, chosen);
    end if;
    perform pgtrickle_internal.warn_about_publishing(relation_id);
    return chosen;
end
$$;

-- drop_stream_table_publication: drop the publication that stream_table_to_publication created.
create or replace function pgtrickle.drop_stream_table_publication(name text) returns void
language plpgsql
as $$
begin
    perform pgtrickle_internal.unpublish(pgtrickle_internal.stream_table(name));
end
$$;
comment on function pgtrickle.drop_stream_table_publication(text) is
    E'Drop the publication that stream_table_to_publication created. Drop the subscriptions first: their slots keep the log of '
    'the server otherwise. Call it with SELECT. You must own the publication.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';

create or replace function pgtrickle_internal.unpublish(id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
    chosen name := pgtrickle_internal.own_publication(relation_id);
    others text := (select string_agg(quote_ident(p.publication), ', ' order by p.publication)
        from pgtrickle_internal.published_tables p where p.relation_id = pgtrickle_internal.bound_relation(id));
begin
    if chosen is null then
        raise exception '%', format('pgtrickle has not published stream table %s', pgtrickle_internal.printed(relation_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = coalesce('It belongs to ' || others || '. To change that, use ALTER PUBLICATION.',
                format('To publish it, run select pgtrickle.stream_table_to_publication(%L).', pgtrickle_internal.printed(relation_id)));
    end if;
    if pgtrickle_internal.other_table(chosen, relation_id) is not null then
        raise exception '%', format('publication %I also publishes %s', chosen, pgtrickle_internal.other_table(chosen, relation_id)) using
            errcode = 'dependent_objects_still_exist',
            hint = format('Run alter publication %I drop table %s.', chosen, pgtrickle_internal.printed(relation_id));
    end if;
    perform pgtrickle_internal.drop_publication(relation_id, chosen);
end
$$;

-- other_table: another table that a publication names; null if there is none.
create or replace function pgtrickle_internal.other_table(chosen name, relation_id oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select pgtrickle_internal.printed(r.prrelid) from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
    where p.pubname = chosen and r.prrelid <> relation_id order by 1 limit 1
$$;

-- drop_publication_with: drop the publication of a table that is about to be dropped, if it is ours and the caller's.
create or replace function pgtrickle_internal.drop_publication_with(relation_id oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    chosen name := pgtrickle_internal.own_publication(relation_id);
begin
    if exists (select from pg_publication p where p.pubname = chosen and pg_has_role(p.pubowner, 'USAGE')
        and pgtrickle_internal.other_table(chosen, relation_id) is null)
    then
        perform pgtrickle_internal.drop_publication(relation_id, chosen);
    end if;
end
$$;

-- drop_publication: drop a publication that pgtrickle created. Warns if slots still retain WAL for its subscribers.
create or replace function pgtrickle_internal.drop_publication(relation_id oid, chosen name) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    slots text := (select string_agg(quote_ident(s.slot), ', ' order by 1) from pgtrickle.publication_status s
        where s.stream_table = pgtrickle_internal.printed(relation_id) and s.slot_state in ('active', 'inactive', 'lost'));
begin
    begin
        execute format('drop publication %I', chosen);
    exception when insufficient_privilege then
        raise exception '%', format('you must own publication %I to drop it', chosen) using
            errcode = 'insufficient_privilege',
            hint = (select format('Its owner is %I.', pg_get_userbyid(p.pubowner)) from pg_publication p where p.pubname = chosen);
    end;
    if slots is not null then
        raise warning '%', format('slots of its subscribers still keep the log of the server: %s', slots) using
            hint = 'Drop the subscriptions where they are, or the slots with pg_drop_replication_slot.';
    end if;
end
$$;
