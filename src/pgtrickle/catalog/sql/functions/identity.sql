-- identity: whether this is the database that the catalog was written in, or a copy of it.
--
-- The catalog stores OIDs and transaction ids, which mean something else in a copy. So pgt_identity stores
-- the identity of the database: the system identifier of the server, the OID of the database, the OID of a
-- catalog table, and the transaction that wrote its first row (`marker`). A dump keeps none of them, a clone
-- by CREATE DATABASE ... TEMPLATE has another OID, pg_upgrade makes another system identifier. A physical copy
-- keeps all of them, and with them all OIDs and transaction ids: it is a failover, and work continues. A server whose
-- transaction counter was set back (pg_resetwal) counts as another one: frontiers would hide what is written from
-- now on.

-- system_identifier: the system identifier of the server; null if the caller may not call pg_control_system().
create or replace function pgtrickle_internal.system_identifier() returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (select c.system_identifier from pg_control_system() c);
exception when insufficient_privilege or undefined_function or feature_not_supported then
    return null;
end
$$;

-- timeline: the timeline of the server; null on a standby, or if the server does not show it. Promoting a standby
-- starts a new timeline.
create or replace function pgtrickle_internal.timeline() returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if pg_is_in_recovery() then
        return null;
    end if;
    return left(pg_walfile_name(pg_current_wal_lsn()), 8);
exception when insufficient_privilege or undefined_function or feature_not_supported then
    return null;
end
$$;

-- present_identity: the current identity of the database.
create or replace function pgtrickle_internal.present_identity()
returns table (system_identifier bigint, database_id oid, catalog_id oid, marker text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select pgtrickle_internal.system_identifier(), d.oid, v.tableoid, v.xmin::text
    from pg_database d, pgtrickle.pgt_schema_version v
    where d.datname = current_database() and v.version = 1
$$;

-- has_moved: whether the identity of the database differs from the stored one.
create or replace function pgtrickle_internal.has_moved() returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select not exists (
        select from pgtrickle.pgt_identity i join pgtrickle_internal.present_identity() p
            on p.database_id = i.database_id and p.catalog_id = i.catalog_id and p.marker = i.marker
                and coalesce(p.system_identifier = i.system_identifier, true)
        where i.seen_xid is null or i.seen_xid <= pg_snapshot_xmax(pg_current_snapshot()))
$$;

-- is_copy: whether the catalog came here with a dump, a clone or an upgrade, and has not been repaired since.
-- Without stream tables there is nothing to repair: the first one adopts the new identity.
create or replace function pgtrickle.is_copy() returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select (exists (select from pgtrickle.pgt_stream_tables) or exists (select from pgtrickle.pgt_sources))
        and pgtrickle_internal.has_moved()
$$;
comment on function pgtrickle.is_copy() is
    'Whether this database was copied from another one and needs pgtrickle.repair(). Call it with SELECT. '
    'Everyone may call it.';

-- check_not_copy: refuse to act in a copy: its OIDs belong to other tables.
create or replace function pgtrickle_internal.check_not_copy() returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if pgtrickle.is_copy() then
        raise exception 'this database is a copy, and pgtrickle does nothing in it until it is repaired' using
            errcode = 'TC008',
            hint = 'Run select * from pgtrickle.repair(). It finds every stream table and source by name, captures '
                'their changes again and reloads all stream tables.';
    end if;
end
$$;

-- adopt_identity: store the identity of this database. Runs as the sidecar's role.
create or replace function pgtrickle_internal.adopt_identity() returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    insert into pgtrickle.pgt_identity as i (system_identifier, database_id, catalog_id, marker, seen_xid)
    select p.system_identifier, p.database_id, p.catalog_id, p.marker, pg_snapshot_xmax(pg_current_snapshot())
    from pgtrickle_internal.present_identity() p
    on conflict (is_only) do update set system_identifier = excluded.system_identifier,
        database_id = excluded.database_id, catalog_id = excluded.catalog_id, marker = excluded.marker,
        bound_at = excluded.bound_at, seen_xid = excluded.seen_xid
$$;

-- note_counter: store the transaction counter of the server, but not often: an idle server stays idle.
create or replace function pgtrickle_internal.note_counter() returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    update pgtrickle.pgt_identity i set seen_xid = s.next
    from (select pg_snapshot_xmax(pg_current_snapshot())) s(next)
    where coalesce(s.next::text::numeric - i.seen_xid::text::numeric > 1000, true)
        and not pgtrickle_internal.has_moved()
$$;

-- settle_identity: before the first stream table of an empty installation is created, adopt the current identity.
create or replace function pgtrickle_internal.settle_identity() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_not_copy();
    if pgtrickle_internal.has_moved() then
        perform pgtrickle_internal.adopt_identity();
    end if;
end
$$;

-- installation: the version of the catalog, whether this is a copy, and the server, as one text. A sidecar
-- compares it at every poll and every claim: its address may lead to another server now.
create or replace function pgtrickle_internal.installation() returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select concat_ws(' ', (select max(v.version) from pgtrickle.pgt_schema_version v),
        case when pgtrickle.is_copy() then 'copy' else 'original' end,
        (select concat_ws('/', coalesce(p.system_identifier::text, '-'), p.database_id, p.catalog_id, p.marker,
            coalesce(pgtrickle_internal.timeline(), '-')) from pgtrickle_internal.present_identity() p))
$$;

-- is_guarded: whether a table has the trigger that pgtrickle adds to its stream tables.
create or replace function pgtrickle_internal.is_guarded(relation_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = relation_id and t.tgname = 'pgtrickle_guard'
            and p.pronamespace in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace) and p.proname = 'refuse_direct_write')
$$;

-- bound_relation: the table of a stream table if that is certain, otherwise null. The table must have its OID, and
-- its name or our guard, and the OID must not come from another database.
create or replace function pgtrickle_internal.bound_relation(id bigint) returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.oid
    from pgtrickle.pgt_stream_tables s
    join pg_class c on c.oid = s.pgt_relid and c.relkind = 'r'
    join pg_namespace n on n.oid = c.relnamespace
    where s.pgt_id = id and ((n.nspname, c.relname) = (s.pgt_schema, s.pgt_name) or pgtrickle_internal.is_guarded(c.oid))
        and not pgtrickle.is_copy()
$$;

-- named_relation: the table that currently has the name of a stream table, whatever it is; null if there is none.
create or replace function pgtrickle_internal.named_relation(id bigint) returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select c.oid
    from pgtrickle.pgt_stream_tables s
    join pg_namespace n on n.nspname = s.pgt_schema
    join pg_class c on c.relnamespace = n.oid and c.relname = s.pgt_name and c.relkind = 'r'
    where s.pgt_id = id
$$;

-- shown_name: the name of a stream table for messages: the current name of its table, or the last known one.
create or replace function pgtrickle_internal.shown_name(id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(pgtrickle_internal.printed(pgtrickle_internal.bound_relation(s.pgt_id)), format('%I.%I', s.pgt_schema, s.pgt_name))
    from pgtrickle.pgt_stream_tables s where s.pgt_id = id
$$;
