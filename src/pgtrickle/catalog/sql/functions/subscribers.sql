-- subscribers: the replication slots that read stream tables, and how far they are. A slot belongs to a database and not
-- to a publication, so the owner of a stream table says which slots read it. The sidecar finds those that are connected
-- if PostgreSQL shows it what their connections do.

-- may_register: whether the caller may act as the owner of a stream table, or as the sidecar's role.
create or replace function pgtrickle_internal.may_register(id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = id and not pgtrickle.is_copy()
            and (pg_has_role(c.relowner, 'USAGE') or pg_has_role(pgtrickle.sidecar_role(), 'USAGE')))
$$;

-- own_subscribers: the subscribers that the current role may register and remove. See own_requests for why this is a
-- view.
create or replace view pgtrickle_internal.own_subscribers with (security_barrier) as
select s.pgt_id, s.slot from pgtrickle.pgt_subscribers s where pgtrickle_internal.may_register(s.pgt_id)
with cascaded check option;

-- note_subscriber: record the role that registers a slot; PostgreSQL provides it, so it cannot be forged.
create or replace function pgtrickle_internal.note_subscriber() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    new.registered_by := current_user;
    return new;
end
$$;
create or replace trigger note_subscriber before insert on pgtrickle.pgt_subscribers
    for each row execute function pgtrickle_internal.note_subscriber();

-- check_may_register: raise an error unless the caller may register subscribers of the stream table.
create or replace function pgtrickle_internal.check_may_register(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
begin
    if not pgtrickle_internal.may_register(id) then
        raise exception '%', format('you must own stream table %s to register its subscribers', pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = (select format('Its owner is %I.', pg_get_userbyid(c.relowner)) from pg_class c where c.oid = relation_id);
    end if;
end
$$;

-- register_subscriber: record that a slot reads a stream table. Safe to run again.
create or replace function pgtrickle.register_subscriber(name text, slot text) returns void
language plpgsql
as $$
begin
    perform pgtrickle_internal.register_slot(pgtrickle_internal.stream_table(name), slot);
end
$$;
comment on function pgtrickle.register_subscriber(text, text) is
    E'Record that a replication slot reads a stream table, so that publication_status shows how far it is and an alert is sent '
    'when it falls behind. Safe to run again. Call it with SELECT. You must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nslot: The logical replication slot. A subscription has a slot of its own name, unless it was created with another.';

create or replace function pgtrickle_internal.register_slot(id bigint, slot text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_register(id);
    if not exists (select from pg_replication_slots r where r.slot_name = slot and r.slot_type = 'logical'
        and r.database = current_database() and not r.temporary)
    then
        raise exception '%', format('there is no logical replication slot %L in this database', slot) using
            errcode = 'invalid_parameter_value',
            hint = 'select slot_name, database from pg_replication_slots lists all of them. CREATE SUBSCRIPTION creates one.';
    end if;
    insert into pgtrickle_internal.own_subscribers (pgt_id, slot) values (id, register_slot.slot)
    on conflict do nothing;
end
$$;

-- unregister_subscriber: forget that a slot reads a stream table. Safe to run again.
create or replace function pgtrickle.unregister_subscriber(name text, slot text) returns void
language plpgsql
as $$
begin
    perform pgtrickle_internal.unregister_slot(pgtrickle_internal.stream_table(name), slot);
end
$$;
comment on function pgtrickle.unregister_subscriber(text, text) is
    E'Forget a slot that register_subscriber has recorded. The slot itself stays. Safe to run again. Call it with SELECT. You '
    'must own the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nslot: The replication slot.';

create or replace function pgtrickle_internal.unregister_slot(id bigint, slot text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_register(id);
    delete from pgtrickle_internal.own_subscribers s where s.pgt_id = id and s.slot = unregister_slot.slot;
end
$$;

-- current_lsn: the end of the log of this server, or of what a standby has replayed.
create or replace function pgtrickle_internal.current_lsn() returns pg_lsn
language sql stable set search_path = pg_catalog, pg_temp
as $$ select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end $$;

-- subscriber_progress: how far each subscriber is.
create or replace view pgtrickle_internal.subscriber_progress as
select s.subscriber_id, s.pgt_id, s.slot, s.publication, r.confirmed_flush_lsn,
    pg_catalog.pg_wal_lsn_diff((select pgtrickle_internal.current_lsn()), r.confirmed_flush_lsn)::bigint as lag_bytes,
    case when r.slot_name is null then 'missing' when r.wal_status = 'lost' then 'lost'
        when r.active then 'active' else 'inactive' end as slot_state
from pgtrickle.pgt_subscribers s
left join pg_catalog.pg_replication_slots r on r.slot_name = s.slot and r.slot_type = 'logical'
    and r.database = pg_catalog.current_database();

-- publication_status: which stream tables are published, to whom, and how far each subscriber is.
create or replace view pgtrickle.publication_status as
with published as (
    select s.pgt_id, p.publication, p.is_made_by_us
    from pgtrickle_internal.published_tables p
    join pgtrickle.pgt_stream_tables s on s.pgt_relid = p.relation_id
    where pgtrickle_internal.bound_relation(s.pgt_id) is not null
), subscribers as (
    -- a registered slot is assumed to read the publication that pgtrickle created, if there is one
    select g.*, (select p.publication from published p where p.pgt_id = g.pgt_id
        order by p.publication = g.publication desc nulls last, p.is_made_by_us desc, p.publication limit 1) as read_publication
    from pgtrickle_internal.subscriber_progress g
)
select pgtrickle_internal.shown_name(coalesce(p.pgt_id, g.pgt_id)) as stream_table, p.publication, g.slot,
    g.confirmed_flush_lsn, g.lag_bytes, g.slot_state = 'active' as active, g.slot_state,
    e.since is not null as is_late, e.since
from published p
full join subscribers g on g.pgt_id = p.pgt_id and g.read_publication = p.publication
left join pgtrickle.pgt_episodes e on e.event = 'publication_lag' and e.subject = g.subscriber_id;
comment on view pgtrickle.publication_status is
    'The publications that stream tables belong to, and how far each subscriber that is registered or was found is. Everyone '
    'may read it.';
comment on column pgtrickle.publication_status.stream_table is 'The stream table.';
comment on column pgtrickle.publication_status.publication is
    'The publication; null if the stream table has a subscriber but is not published any more.';
comment on column pgtrickle.publication_status.slot is
    'The replication slot of the subscriber; null if no subscriber is known.';
comment on column pgtrickle.publication_status.confirmed_flush_lsn is
    'The place in the log of the server up to which the subscriber has confirmed everything.';
comment on column pgtrickle.publication_status.lag_bytes is
    'How much log the server has written since then, for all of its databases.';
comment on column pgtrickle.publication_status.active is 'Whether the subscriber is connected.';
comment on column pgtrickle.publication_status.slot_state is
    'active, inactive, lost (the server has removed log that the subscriber needs) or missing (there is no such slot).';
comment on column pgtrickle.publication_status.is_late is
    'Whether the sidecar has sent the alert publication_lag, and the subscriber has not caught up since.';
comment on column pgtrickle.publication_status.since is 'When it sent that alert.';
