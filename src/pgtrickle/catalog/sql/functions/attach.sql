-- attach: other databases whose tables can be sources. The sidecar has their addresses and credentials, in its
-- configuration; here they only have names. With them go the rights of the sidecar in those databases, so only its role
-- attaches a database, declares a table, and grants others the right to read it.

-- check_may_attach: refuse unless the caller may act as the sidecar's role.
create or replace function pgtrickle_internal.check_may_attach() returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if not pgtrickle_internal.may_act_as(pgtrickle.sidecar_role()) then
        raise exception 'you need the rights of the owner of pgtrickle to attach databases and to declare their tables' using
            errcode = 'insufficient_privilege',
            hint = format('Connect as %I: the sidecar reads the other database with its own rights.',
                pg_get_userbyid(pgtrickle.sidecar_role()));
    end if;
    perform pgtrickle_internal.check_not_copy();
end
$$;

-- attach_database: make a database of the sidecar's configuration known by an alias. Safe to run again.
create or replace function pgtrickle.attach_database(alias text, reference text, cdc_mode text default 'trigger') returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_attach();
    if alias is null or alias !~ '^[a-z_][a-z0-9_]{0,39}$' then
        raise exception '%', format('%s is not an alias', coalesce(quote_literal(alias), 'null')) using
            errcode = 'invalid_parameter_value',
            hint = 'Give at most 40 lower-case letters, digits and underscores, not beginning with a digit.';
    elsif exists (select from pg_namespace n where n.nspname = alias) then
        raise exception '%', format('a schema is called %s, so alias.schema.table would be ambiguous', alias) using
            errcode = 'duplicate_object', hint = 'Choose another alias.';
    elsif coalesce(btrim(reference), '') = '' then
        raise exception 'the reference is empty' using errcode = 'invalid_parameter_value',
            hint = 'Give the name of a database in the configuration of the sidecar.';
    elsif cdc_mode is null or cdc_mode not in ('trigger', 'wal') then
        raise exception '%', format('cdc_mode cannot be %s', coalesce(quote_literal(cdc_mode), 'null')) using
            errcode = 'invalid_parameter_value',
            hint = 'It is trigger, or wal: then nothing is installed in the other database.';
    elsif exists (select from pgtrickle.pgt_attached_databases d
        where d.alias = attach_database.alias and d.reference <> attach_database.reference and not d.is_detached)
    then
        raise exception '%', format('%s is attached already, as %s', alias, (
            select d.reference from pgtrickle.pgt_attached_databases d where d.alias = attach_database.alias)) using
            errcode = 'duplicate_object', hint = format('To attach another database, detach it first: '
                'select pgtrickle.detach_database(%L).', alias);
    elsif exists (select from pgtrickle.pgt_attached_databases d
        where d.alias = attach_database.alias and d.cdc_mode <> attach_database.cdc_mode and not d.is_detached)
    then
        raise exception '%', format('%s is attached already, with the cdc_mode %s', alias, (
            select d.cdc_mode from pgtrickle.pgt_attached_databases d where d.alias = attach_database.alias)) using
            errcode = 'duplicate_object', hint = format('To attach it in another way, detach it first: '
                'select pgtrickle.detach_database(%L).', alias);
    elsif exists (select from pgtrickle.pgt_attached_databases d where d.alias = attach_database.alias and d.is_detached) then
        raise exception '%', format('%s is being detached', alias) using errcode = 'lock_not_available',
            hint = 'The sidecar has to tell the other database first. Try again, or choose another alias.';
    end if;
    insert into pgtrickle.pgt_attached_databases (alias, reference, cdc_mode)
    values (attach_database.alias, attach_database.reference, attach_database.cdc_mode)
    on conflict do nothing;
end
$$;
comment on function pgtrickle.attach_database(text, text, text) is
    E'Make another database known by an alias, so that queries of stream tables can read its tables. Call it with SELECT. '
    'You must be able to act as the owner of pgtrickle.\n'
    '\nalias: What to call it here: at most 40 lower-case letters, digits and underscores.'
    '\nreference: Its name in the configuration of the sidecar, which has its address and credentials.'
    '\ncdc_mode: How its changes are captured: trigger, or wal. With wal they are decoded from its log, and nothing is installed there.';

-- detach_database: forget an attached database. Refused while a stream table reads one of its tables.
create or replace function pgtrickle.detach_database(alias text) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
    attached record;
    reader text;
begin
    perform pgtrickle_internal.check_may_attach();
    if not exists (select from pgtrickle.pgt_attached_databases d where d.alias = detach_database.alias and not d.is_detached) then
        raise exception '%', format('no database is attached as %s', coalesce(alias, 'null')) using
            errcode = 'undefined_object', hint = 'pgtrickle.attached_databases lists them.';
    end if;
    select pgtrickle_internal.shown_name(p.pgt_id) into reader
    from pgtrickle.pgt_attached_tables t join pgtrickle.pgt_dependencies p on p.source_relid = t.source_relid
    where t.alias = detach_database.alias and t.is_stand_in limit 1;
    if found then
        raise exception '%', format('stream table %s reads a table of %s', reader, alias) using
            errcode = 'dependent_objects_still_exist', hint = 'Drop it, or change its query.';
    end if;
    for attached in
        select t.source_relid as id from pgtrickle.pgt_attached_tables t join pg_class c on c.oid = t.source_relid
        where t.alias = detach_database.alias and t.is_stand_in
    loop
        execute format('drop table %s', pgtrickle_internal.printed(attached.id));
    end loop;
    perform pgtrickle_internal.release_origin(t.source_relid, format('%s was detached', detach_database.alias))
    from pgtrickle.pgt_attached_tables t where t.alias = detach_database.alias and not t.is_stand_in;
    delete from pgtrickle.pgt_attached_tables t where t.alias = detach_database.alias;
    update pgtrickle.pgt_attached_databases d set is_detached = true where d.alias = detach_database.alias;
end
$$;
comment on function pgtrickle.detach_database(text) is
    E'Forget an attached database and the tables that were declared of it. Refused while a stream table reads one of them. '
    'Call it with SELECT. You must be able to act as the owner of pgtrickle.\n'
    '\nalias: What it is called here.';

-- declare_source: let queries read a table of an attached database. Returns the name of its stand-in, which the sidecar
-- creates after the commit.
create or replace function pgtrickle.declare_source(alias text, schema text, "table" text) returns text
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_attach();
    if not exists (select from pgtrickle.pgt_attached_databases d where d.alias = declare_source.alias and not d.is_detached) then
        raise exception '%', format('no database is attached as %s', coalesce(alias, 'null')) using
            errcode = 'undefined_object', hint = 'Attach it first: select pgtrickle.attach_database(alias, reference).';
    elsif coalesce(schema, '') = '' or coalesce("table", '') = '' then
        raise exception 'the table is not named' using errcode = 'invalid_parameter_value',
            hint = 'Give the schema and the name of a table in the attached database.';
    end if;
    insert into pgtrickle.pgt_attached_tables (alias, origin_schema, origin_name) values (alias, schema, "table")
    on conflict do nothing;
    -- one that was refused is tried again
    update pgtrickle.pgt_attached_tables t set last_error = null
    where (t.alias, t.origin_schema, t.origin_name) = (declare_source.alias, declare_source.schema, declare_source."table")
        and t.is_stand_in;
    return format('pgtrickle_attached.%I', pgtrickle_internal.stand_in_name(alias, schema, "table"));
end
$$;
comment on function pgtrickle.declare_source(text, text, text) is
    E'Let queries of stream tables read a table of an attached database, as alias.schema.table. Returns the name of its '
    'stand-in: a table without rows that has its columns, which the sidecar creates within a second. Other roles need '
    'SELECT on the stand-in. Safe to run again. Call it with SELECT. You must be able to act as the owner of pgtrickle.\n'
    '\nalias: What the database is called here.'
    '\nschema: The schema of the table there.'
    '\ntable: The name of the table there.';

-- stand_in: the stand-in of a table of an attached database, as SQL. Waits while the sidecar creates it.
create or replace function pgtrickle_internal.stand_in(alias text, schema text, "table" text) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
    attached record;
    deadline timestamptz := clock_timestamp() + interval '20 s';
begin
    loop
        select t.source_relid, t.last_error, t.declared_at = now() or t.declared_at > now() as is_new into attached
        from pgtrickle.pgt_attached_tables t
        where (t.alias, t.origin_schema, t.origin_name) = (stand_in.alias, stand_in.schema, stand_in."table") and t.is_stand_in;
        if not found then
            raise exception '%', format('%s.%s.%s is not declared', alias, schema, "table") using
                errcode = 'TP007', hint = format('select pgtrickle.declare_source(%L, %L, %L)', alias, schema, "table"),
                -- for our own commands, which declare it
                constraint = alias, schema = schema, table = "table";
        elsif attached.source_relid is not null then
            return pgtrickle_internal.printed(attached.source_relid);
        elsif attached.last_error is not null then
            raise exception '%', format('%s.%s.%s cannot be read: %s', alias, schema, "table", attached.last_error) using
                errcode = 'TP007', hint = format('When that is settled: select pgtrickle.declare_source(%L, %L, %L)',
                    alias, schema, "table");
        elsif attached.is_new or clock_timestamp() > deadline then
            raise exception '%', format('the stand-in of %s.%s.%s does not exist yet', alias, schema, "table") using
                errcode = 'TP007', hint = case when attached.is_new
                    then 'It was declared in this transaction: commit first, since a sidecar creates it.'
                    else 'A sidecar creates it. Check that one is running, with pgtrickle status.' end;
        end if;
        perform pg_sleep(0.05);
    end loop;
end
$$;

-- with_stand_ins: a query, with stand-ins in the place of alias.schema.table. Strings and comments stay as they are.
create or replace function pgtrickle_internal.with_stand_ins(query text) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $body$
declare
    identifier constant text := '(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)';
    rest text := query;
    token text;
    names text[];
    result text := '';
begin
    if not exists (select from pgtrickle.pgt_attached_databases d where not d.is_detached
        and strpos(lower(query), d.alias) > 0)
    then
        return (query);
    end if;
    while rest <> '' loop
        token := coalesce(
            substring(rest from '^[eE]''(?:[^''\\]|\\.|'''')*'''),
            substring(rest from '^''(?:[^'']|'''')*'''),
            substring(rest from '^--[^\n]*'),
            substring(rest from '^/\*(?:[^*]|\*+[^*/])*\*+/'),
            substring(rest from '^\$(?:[[:alpha:]_][[:alnum:]_]*)?\$'),
            substring(rest from format('^%1$s(?:\s*\.\s*%1$s)*', identifier)),
            substring(rest from '^[0-9][[:alnum:]_.]*'),
            left(rest, 1));
        if token ~ '^\$.*\$$' and strpos(substr(rest, length(token) + 1), token) > 0 then
            token := left(rest, 2 * length(token) + strpos(substr(rest, length(token) + 1), token) - 1);
        elsif token ~ format('^%1$s\s*\.\s*%1$s\s*\.\s*%1$s', identifier) then
            names := parse_ident(token);
            if exists (select from pgtrickle.pgt_attached_databases d where d.alias = names[1] and not d.is_detached) then
                result := result || pgtrickle_internal.stand_in(names[1], names[2], names[3])
                    || coalesce((select string_agg('.' || quote_ident(n), '' order by o)
                        from unnest(names[4:]) with ordinality as more(n, o)), '');
                rest := substr(rest, length(token) + 1);
                continue;
            end if;
        end if;
        result := result || token;
        rest := substr(rest, length(token) + 1);
    end loop;
    return result;
end
$body$;

create or replace view pgtrickle.attached_databases as
select d.alias, d.reference, d.attached_by, d.attached_at, d.is_detached,
    case when t.failing > 0 or d.failing_since is not null then d.failing_since end as failing_since,
    case when pg_has_role(pgtrickle.sidecar_role(), 'USAGE') then d.last_error end as last_error,
    t.tables, t.frontier, t.followed_at, d.cdc_mode, d.position
from pgtrickle.pgt_attached_databases d
cross join lateral (
    select count(*) as tables, count(*) filter (where t.last_error is not null) as failing,
        min(t.followed_at) as followed_at,
        (select u.frontier from pgtrickle.pgt_attached_tables u where u.alias = d.alias and u.frontier is not null
            order by u.followed_at desc nulls last limit 1) as frontier
    from pgtrickle.pgt_attached_tables t where t.alias = d.alias) t;
comment on view pgtrickle.attached_databases is
    'The attached databases: what each is called in the configuration of the sidecar, the snapshot up to which it has been '
    'followed, and the error if it cannot be followed. Everyone may read it.';
comment on column pgtrickle.attached_databases.alias is 'What it is called here.';
comment on column pgtrickle.attached_databases.reference is 'Its name in the configuration of the sidecar.';
comment on column pgtrickle.attached_databases.attached_by is 'The role that attached it.';
comment on column pgtrickle.attached_databases.attached_at is 'When.';
comment on column pgtrickle.attached_databases.is_detached is 'Whether it is being detached: the sidecar has not told it yet.';
comment on column pgtrickle.attached_databases.failing_since is 'Since when it cannot be followed; null if it can.';
comment on column pgtrickle.attached_databases.last_error is 'Why it cannot be followed. Only the owner of pgtrickle sees this.';
comment on column pgtrickle.attached_databases.tables is 'How many of its tables were declared.';
comment on column pgtrickle.attached_databases.frontier is 'The snapshot of it up to which it was followed last; null with the cdc_mode wal.';
comment on column pgtrickle.attached_databases.followed_at is 'When that was the present there.';
comment on column pgtrickle.attached_databases.cdc_mode is 'How its changes are captured: trigger, or wal.';
comment on column pgtrickle.attached_databases.position is 'With the cdc_mode wal: the position in its log up to which it was followed.';

create or replace view pgtrickle.attached_tables as
select t.alias, t.origin_schema, t.origin_name, pgtrickle_internal.printed(t.source_relid) as stand_in,
    t.followed_columns, t.frontier, t.followed_at,
    case when pg_has_role(pgtrickle.sidecar_role(), 'USAGE') then t.last_error end as last_error,
    (select count(distinct p.pgt_id) from pgtrickle.pgt_dependencies p where p.source_relid = t.source_relid) as readers,
    t.position
from pgtrickle.pgt_attached_tables t;
comment on view pgtrickle.attached_tables is
    'The tables of attached databases that were declared: the stand-in that queries read, the columns that are copied, and '
    'the snapshot of the other database that the copy shows. Everyone may read it.';
comment on column pgtrickle.attached_tables.alias is 'The attached database.';
comment on column pgtrickle.attached_tables.origin_schema is 'The schema of the table there.';
comment on column pgtrickle.attached_tables.origin_name is 'Its name there.';
comment on column pgtrickle.attached_tables.stand_in is 'The table that queries read; null until the sidecar has created it.';
comment on column pgtrickle.attached_tables.followed_columns is 'The columns of the copy.';
comment on column pgtrickle.attached_tables.frontier is 'The snapshot of the attached database that the copy shows; null if it has to be compared, and with the cdc_mode wal.';
comment on column pgtrickle.attached_tables.followed_at is 'When that was the present there.';
comment on column pgtrickle.attached_tables.last_error is 'Why it cannot be followed. Only the owner of pgtrickle sees this.';
comment on column pgtrickle.attached_tables.readers is 'How many stream tables read it.';
comment on column pgtrickle.attached_tables.position is 'With the cdc_mode wal: the position in the log that the copy shows. Every transaction that committed before it is in the copy, and no other. Null if the copy has to be compared.';

create or replace view pgtrickle.attached_frontiers as
select pgtrickle_internal.shown_name(f.pgt_id) as name, f.alias, f.frontier, f.followed_at, f.position
from pgtrickle.pgt_attached_frontiers f;
comment on view pgtrickle.attached_frontiers is
    'For each stream table that reads other databases: the snapshot of each of them that it shows, or with the cdc_mode wal '
    'the position in its log. It equals its query over the tables as they were then. Everyone may read it.';
comment on column pgtrickle.attached_frontiers.name is 'The stream table.';
comment on column pgtrickle.attached_frontiers.alias is 'The attached database.';
comment on column pgtrickle.attached_frontiers.frontier is 'The snapshot of the attached database that the stream table shows; null with the cdc_mode wal.';
comment on column pgtrickle.attached_frontiers.followed_at is 'When that was the present there.';
comment on column pgtrickle.attached_frontiers.position is 'With the cdc_mode wal: the position in the log of its server that the stream table shows. It includes every transaction that committed before it, and no other.';

create or replace view pgtrickle.broker_entries as
select pgtrickle_internal.printed(e.source_relid) as source, e.readers, e.pending_rows, e.last_updated_tick, e.updated_at,
    b.holder is not null and b.renewed_at > clock_timestamp() - interval '5 s' as is_served
from pgtrickle.pgt_broker_entries e left join pgtrickle.pgt_broker b on true;
comment on view pgtrickle.broker_entries is
    'What the broker has read here for the databases that follow this one: for each table, how many databases read it, how '
    'many change rows its last window had, and in which tick of the broker that was. is_served: whether a broker has been '
    'active within five seconds; without one, each database reads for itself. Everyone may read it.';
comment on column pgtrickle.broker_entries.source is 'The table.';
comment on column pgtrickle.broker_entries.readers is 'How many databases follow it.';
comment on column pgtrickle.broker_entries.pending_rows is 'How many change rows its last window had.';
comment on column pgtrickle.broker_entries.last_updated_tick is 'The tick of the broker in which that was.';
comment on column pgtrickle.broker_entries.updated_at is 'When that was recorded.';
comment on column pgtrickle.broker_entries.is_served is 'Whether a broker has been active within five seconds.';

create or replace view pgtrickle.remote_readers as
select r.label as reader, r.reader as reader_id, pgtrickle_internal.printed(r.source_relid) as source, r.columns, r.frontier,
    r.registered_at, r.seen_at
from pgtrickle.pgt_remote_readers r;
comment on view pgtrickle.remote_readers is
    'The databases that follow tables of this one. Changes are kept until each of them has passed them; one that is not '
    'seen for a week is forgotten, and reads everything again when it comes back. Everyone may read it.';
comment on column pgtrickle.remote_readers.reader is 'The name of the database that reads.';
comment on column pgtrickle.remote_readers.reader_id is 'Identifies it.';
comment on column pgtrickle.remote_readers.source is 'The table that it follows.';
comment on column pgtrickle.remote_readers.columns is 'The columns that it follows.';
comment on column pgtrickle.remote_readers.frontier is 'The snapshot up to which it has followed; null until it has all rows.';
comment on column pgtrickle.remote_readers.registered_at is 'Since when it follows the table.';
comment on column pgtrickle.remote_readers.seen_at is 'When it was last heard of.';
