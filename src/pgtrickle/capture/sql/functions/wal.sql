-- wal: capture from the write-ahead log: one replication slot and one publication for all sources of this database.
-- Run as the sidecar's role, unless stated otherwise.

-- wal_lock: the class of the advisory locks of WAL capture: key 0 is held by the session that decodes, another key by
-- the refresh that uses a window table.
create or replace function pgtrickle_internal.wal_lock() returns integer
language sql immutable as $$ select 1885828214 $$;

-- wal_slot: the name of our slot. Slots belong to the server, so the name contains the database.
create or replace function pgtrickle_internal.wal_slot() returns name
language sql stable set search_path = pg_catalog, pg_temp
as $$ select format('pgtrickle_%s', d.oid)::name from pg_database d where d.datname = current_database() $$;

-- log_encoding: the encoding in which we read names and values from the log. Without an encoding of its own, a database
-- has bytes that cannot be converted.
create or replace function pgtrickle_internal.log_encoding() returns name
language sql stable set search_path = pg_catalog, pg_temp
as $$ select case getdatabaseencoding() when 'SQL_ASCII' then 'SQL_ASCII' else 'UTF8' end $$;

-- is_decoded: whether triggers do not capture a source now.
create or replace function pgtrickle_internal.is_decoded(source oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_sources s
        where s.source_relid = source and s.capture = 'wal' and s.wal_until is null)
$$;

-- published_as: how a source is published to us, as a jsonb object; null if a part of it is not published, or not
-- completely. It has an entry for the publication, and one for each table that holds rows: its membership in the
-- publication, which keeps it from being made unlogged, or else its file, which is another one after that. The entries
-- change whenever changes may be missing in the log: what was altered and restored has another row in the catalog.
drop function if exists pgtrickle_internal.published_as(oid);
create function pgtrickle_internal.published_as(source oid) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with tree as (
        select c.oid, c.relkind, c.relnamespace, c.relfilenode, c.relispartition
        from pgtrickle_internal.tree_of(source) t(id) join pg_class c on c.oid = t.id
    ), publication as (
        select p.*, p.xmin as written_by from pg_publication p where p.pubname = 'pgtrickle'
    ), members as (
        select r.*, to_jsonb(r) ->> 'prattrs' is null and to_jsonb(r) ->> 'prqual' is null as is_complete
        from publication p join pg_publication_rel r on r.prpubid = p.oid where r.prrelid in (select t.oid from tree t)
    ), schemas as (
        -- the catalog of published schemas came with PostgreSQL 15
        select d.objid from publication p join pg_depend d on d.refclassid = 'pg_publication'::regclass and d.refobjid = p.oid
        join pg_depend n on n.classid = d.classid and n.objid = d.objid and n.refclassid = 'pg_namespace'::regclass
        where d.classid = to_regclass('pg_publication_namespace') and n.refobjid in (select t.relnamespace from tree t)
    )
    select jsonb_build_object('publication', concat_ws(' ', p.oid, p.written_by, to_jsonb(p) ->> 'pubgencols',
            (select string_agg(s.objid::text, ' ' order by s.objid) from schemas s)))
        || (select jsonb_object_agg(t.oid, coalesce('member ' || m.oid, 'file ' || t.relfilenode))
            from tree t left join members m on m.prrelid = t.oid)
    from publication p
    where p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate and not p.pubviaroot
        and not exists (select from members m where not m.is_complete)
        and (p.puballtables or not exists (
            select from tree t where t.relkind = 'r' and not exists (select from members m where m.prrelid = t.oid)
                and not exists (select from pg_get_publication_tables(p.pubname::text) g where g.relid = t.oid)))
$$;

-- identity_columns: the columns of a table that the log contains of every old row: all of them if its replica identity
-- is full. Null if it has none: then PostgreSQL refuses to update a published table. A deferrable key is none.
create or replace function pgtrickle_internal.identity_columns(relation_id oid) returns name[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case c.relreplident
        when 'f' then array(select a.attname from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)
        when 'n' then null
        else (select array_agg(a.attname) from pg_index i
            join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey::smallint[])
            where i.indrelid = c.oid and i.indimmediate and i.indisvalid
                and case c.relreplident when 'd' then i.indisprimary else i.indisreplident end) end
    from pg_class c where c.oid = relation_id
$$;

-- may_replicate: whether a role may use replication slots. Managed servers have roles of their own for it.
create or replace function pgtrickle_internal.may_replicate(role_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pg_roles r where r.oid = role_id and (r.rolreplication or r.rolsuper))
        or exists (select from pg_roles m where m.rolname in ('rds_replication', 'neon_superuser') and pg_has_role(role_id, m.oid, 'USAGE'))
$$;

-- is_append_only: whether every reader of a source insists on the log and promises that rows are only ever added. Then old
-- rows are not needed: a change that has one is answered with a reload, and the promise is taken back.
create or replace function pgtrickle_internal.is_append_only(source oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(s.append_only and s.cdc_mode = 'wal'), false)
    from pgtrickle.pgt_dependencies d join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
    where d.source_relid = source and d.source_type = 'table'
$$;

-- is_followed_elsewhere: whether another database follows a source. Only the sidecar may see which one, so this runs with
-- its rights; everyone may ask.
create or replace function pgtrickle_internal.is_followed_elsewhere(source oid) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select exists (select from pgtrickle.pgt_remote_readers r where r.source_relid = source) $$;

-- wal_obstacle: why a source cannot be captured from the log, and what to do about it; no row if it can be.
create or replace function pgtrickle_internal.wal_obstacle(source oid) returns table (obstacle text, hint text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    with captured as (
        select array(select a.attname from pg_attribute a
            where a.attrelid = source and a.attnum = any (s.columns_captured)) as names, s.columns_captured as numbers
        from pgtrickle.pgt_sources s where s.source_relid = source
    ), tree as (
        select c.oid, c.relkind, c.relowner, c.relpersistence, pgtrickle_internal.printed(c.oid) as name
        from pgtrickle_internal.tree_of(source) t(id) join pg_class c on c.oid = t.id
    ), sidecar as (
        select r.* from pg_roles r where r.oid = pgtrickle.sidecar_role()
    )
    select o.obstacle, o.hint from (
        select 1, format('wal_level is %s', current_setting('wal_level')),
            'Run alter system set wal_level = logical, and restart the server.'
        where current_setting('wal_level') <> 'logical'
        union all
        select 2, format('role %I may not use replication slots', r.rolname), format('Run alter role %I replication.', r.rolname)
        from sidecar r where not pgtrickle_internal.may_replicate(r.oid)
        union all
        select 3, format('all %s replication slots of the server are taken', current_setting('max_replication_slots')),
            'Raise max_replication_slots, or drop a slot that nobody uses.'
        where not exists (select from pg_replication_slots s where s.slot_name = pgtrickle_internal.wal_slot())
            and (select count(*) from pg_replication_slots) >= current_setting('max_replication_slots')::integer
        union all
        select 4, 'it is a stream table', 'Stream tables are always captured by triggers.'
        where exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = source)
        union all
        select 4, 'another database follows it', 'Tables that other databases follow are captured by triggers.'
        where pgtrickle_internal.is_followed_elsewhere(source)
        union all
        (select 5, format('%s is %s', t.name, case when t.relkind = 'f' then 'a foreign table' else 'not in the log' end),
            'Only tables that are neither temporary nor unlogged can be captured from the log.'
        from tree t where t.relkind not in ('r', 'p') or t.relpersistence <> 'p' limit 1)
        union all
        (select 6, format('column %I is generated', a.attname),
            'Use cdc_mode => ''trigger'', or do not use the column in the query.'
        from pg_attribute a, captured d where a.attrelid = source and a.attnum = any (d.numbers)
            and (a.attgenerated = 'v' or a.attgenerated = 's' and current_setting('server_version_num')::integer < 180000) limit 1)
        union all
        -- PostgreSQL refuses to update a published table whose replica identity contains what is not published
        (select 6, format('the replica identity of %s contains the generated column %I, which is not in the log', t.name, a.attname),
            case a.attgenerated when 'v' then 'Use cdc_mode => ''trigger''.'
                else 'Run alter publication pgtrickle set (publish_generated_columns = stored).' end
        from tree t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        where t.relkind = 'r' and current_setting('server_version_num')::integer >= 180000
            and a.attname = any (pgtrickle_internal.identity_columns(t.oid))
            and (a.attgenerated = 'v' or a.attgenerated = 's' and exists (
                select from pg_publication p where p.pubname = 'pgtrickle' and to_jsonb(p) ->> 'pubgencols' <> 's'))
        order by t.name, a.attnum limit 1)
        union all
        select 7, 'it has partitions but no primary key', 'Partitions that are added later would have no replica identity, '
            'and PostgreSQL would refuse to update them. Add a primary key.'
        where exists (select from tree t where t.relkind = 'p') and not exists (
            select from pg_index i where i.indrelid = source and i.indisprimary and i.indimmediate)
        union all
        select 8, format('the replica identity of %s does not contain every column that is used', min(t.name)),
            format('Run %s', string_agg(format('alter table %s replica identity full;', t.name), ' ' order by t.name))
        from tree t, captured d cross join lateral (select pgtrickle_internal.is_append_only(source)) a(is_append_only)
        where t.relkind = 'r' and (case when a.is_append_only then '{}' else d.names end <@ pgtrickle_internal.identity_columns(t.oid)) is not true
        having count(*) > 0
        union all
        (select 9, format('role %I does not own %s, and it is not in the publication pgtrickle', r.rolname, t.name),
            format('Run grant %I to %I.', pg_get_userbyid(t.relowner), r.rolname)
        from tree t, sidecar r where not pg_has_role(r.oid, t.relowner, 'USAGE')
            and pgtrickle_internal.published_as(source) is null limit 1)
    ) o(place, obstacle, hint)
    order by o.place limit 1
$$;

-- wanted_capture: how the readers of a source want it captured: wal if one of them insists on it, else auto if one of
-- them leaves the choice to us, else trigger.
create or replace function pgtrickle_internal.wanted_capture(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when bool_or(s.cdc_mode = 'wal') then 'wal' when bool_or(s.cdc_mode = 'auto') then 'auto' else 'trigger' end
    from pgtrickle.pgt_dependencies d join pgtrickle.pgt_stream_tables s on s.pgt_id = d.pgt_id
    where d.source_relid = source and d.source_type = 'table'
$$;

-- why_triggers: why triggers capture a source although a reader asks for the log; null if the log is used, or not asked for.
create or replace function pgtrickle_internal.why_triggers(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce((select format('%s (%s)', o.obstacle, o.hint) from pgtrickle_internal.wal_obstacle(source) o), s.wal_note,
        'the sidecar has not handed it over yet')
    from pgtrickle.pgt_sources s
    where s.source_relid = source and s.capture = 'trigger' and s.trigger_level <> 'none'
        and pgtrickle_internal.wanted_capture(source) in ('wal', 'auto')
$$;

-- refuse_wal: refuse a stream table that insists on the log if one of its sources cannot be captured from it.
create or replace function pgtrickle_internal.refuse_wal(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    refused record;
begin
    select pgtrickle_internal.printed(d.source_relid) as source, o.* into refused
    from pgtrickle.pgt_stream_tables s join pgtrickle.pgt_dependencies d on d.pgt_id = s.pgt_id
    cross join lateral pgtrickle_internal.wal_obstacle(d.source_relid) o
    where s.pgt_id = id and s.cdc_mode = 'wal' and d.source_type = 'table' order by d.source_relid limit 1;
    if found then
        raise exception '%', format('%s cannot be captured from the write-ahead log: %s', refused.source, refused.obstacle) using
            errcode = 'object_not_in_prerequisite_state', hint = refused.hint;
    end if;
end
$$;

-- slot_gap: what is wrong with our slot, in words; null if every change since the last decoded one is still in it.
create or replace function pgtrickle_internal.slot_gap() returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case when w.slot is null then 'WAL capture does not know its position'
        when w.slot <> pgtrickle_internal.wal_slot() then format('replication slot %I belongs to another database', w.slot)
        when s.slot_name is null then format('replication slot %I was dropped', w.slot)
        when s.wal_status = 'lost' then format('the server has removed log that replication slot %I needs', w.slot)
        when not pgtrickle_internal.may_replicate(pgtrickle.sidecar_role())
            then format('role %I may not use replication slots', pg_get_userbyid(pgtrickle.sidecar_role()))
        when not exists (select from pg_publication p where p.oid = w.publication)
            then 'the publication pgtrickle was dropped'
        when s.plugin <> 'pgoutput' or s.database <> current_database() or s.confirmed_flush_lsn > w.decoded_lsn
            then format('replication slot %I was created again, or read by somebody else', w.slot) end
    from (select 1) one left join pgtrickle.pgt_wal w on true left join pg_replication_slots s on s.slot_name = w.slot
$$;

-- publication_gap: whether changes of a source may be missing in the log, in words; null if they are not. Partitions that
-- were dropped miss nothing.
create or replace function pgtrickle_internal.publication_gap(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select format('the publication of %s was altered', pgtrickle_internal.printed(source))
    from pgtrickle.pgt_sources s where s.source_relid = source and s.capture = 'wal'
        and (case when s.wal_publication ~ '^{' then s.wal_publication::jsonb end @> pgtrickle_internal.published_as(source)) is not true
$$;

-- wal_gap: what is wrong with the capture of a source from the log, in words; null if nothing is.
create or replace function pgtrickle_internal.wal_gap(source oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$ select coalesce(pgtrickle_internal.slot_gap(), pgtrickle_internal.publication_gap(source)) $$;

-- decoded_sources: what the decoder has to know of each source: the columns that are captured, and for each relation
-- that holds rows of it, all columns that are published.
create or replace function pgtrickle_internal.decoded_sources() returns table (
    source bigint, buffer smallint, since pg_lsn, until pg_lsn, numbers smallint[], names bytea[], relations jsonb)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select s.source_relid::bigint, s.active_buffer, s.wal_from, s.wal_until, c.numbers, c.names, (
            select jsonb_object_agg(t.id, (
                select jsonb_agg(jsonb_build_array(encode(convert_to(a.attname, pgtrickle_internal.log_encoding()), 'hex'),
                    a.atttypid::bigint) order by a.attnum)
                from pg_attribute a where a.attrelid = t.id and a.attnum > 0 and not a.attisdropped
                    and (a.attgenerated = '' or a.attgenerated = 's' and exists (
                        select from pg_publication p where p.pubname = 'pgtrickle' and to_jsonb(p) ->> 'pubgencols' = 's'))))
            from pgtrickle_internal.tree_of(s.source_relid) t(id))
    from pgtrickle.pgt_sources s
    cross join lateral (
        select coalesce(array_agg(a.attnum order by a.attnum), '{}'),
            coalesce(array_agg(convert_to(a.attname, pgtrickle_internal.log_encoding()) order by a.attnum), '{}')
        from pg_attribute a where a.attrelid = s.source_relid
            and a.attnum = any (pgtrickle_internal.intact_columns(s.source_relid, s.columns_captured))
    ) c(numbers, names)
    where s.capture = 'wal' and exists (select from pg_class r where r.oid = s.source_relid)
    order by 1
$$;
