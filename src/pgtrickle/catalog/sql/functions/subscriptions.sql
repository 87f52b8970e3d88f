-- subscriptions: channels that a refresh notifies in its own transaction if it changed a stream table. Every role of the
-- database can listen to every channel, so a notification holds numbers and no rows.

-- may_read: whether a role may read a stream table.
create or replace function pgtrickle_internal.may_read(role_name name, id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        join pg_roles r on r.rolname = role_name
        where s.pgt_id = id and has_schema_privilege(r.oid, c.relnamespace, 'USAGE') and has_any_column_privilege(r.oid, c.oid, 'SELECT'))
        and not pgtrickle.is_copy()
$$;

-- own_subscriptions: the subscriptions that the current role made, and those of stream tables that it owns. See
-- own_requests for why this is a view.
create or replace view pgtrickle_internal.own_subscriptions with (security_barrier) as
select s.pgt_id, s.channel, s.subscribed_by from pgtrickle.pgt_subscriptions s
where pgtrickle_internal.may_register(s.pgt_id)
    or exists (select from pg_catalog.pg_roles r where r.rolname = s.subscribed_by and pg_catalog.pg_has_role(r.oid, 'USAGE'))
with cascaded check option;

-- note_subscription: record the role that subscribes; PostgreSQL provides it, so it cannot be forged. What subscribe has
-- checked is checked again, because the view can be written without it.
create or replace function pgtrickle_internal.note_subscription() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
    new.subscribed_by := current_user;
    perform pgtrickle_internal.check_may_subscribe(new.pgt_id, new.channel);
    return new;
end
$$;
create or replace trigger note_subscription before insert on pgtrickle.pgt_subscriptions
    for each row execute function pgtrickle_internal.note_subscription();

-- limit_subscriptions: refuse more subscriptions than a refresh can serve quickly. Runs as the sidecar's role, to count
-- those of everybody.
create or replace function pgtrickle_internal.limit_subscriptions() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if (select count(*) from pgtrickle.pgt_subscriptions s
        where s.pgt_id = new.pgt_id and s.subscribed_by = new.subscribed_by) > 20
    then
        raise exception '%', format('%I has 20 subscriptions to %s already', new.subscribed_by,
                pgtrickle_internal.shown_name(new.pgt_id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = 'Let several listeners share a channel. select * from pgtrickle.subscriptions lists all channels.';
    end if;
    return null;
end
$$;
create or replace trigger limit_subscriptions after insert on pgtrickle.pgt_subscriptions
    for each row execute function pgtrickle_internal.limit_subscriptions();

-- check_channel: refuse what is not the name of a channel, and our own channels.
create or replace function pgtrickle_internal.check_channel(channel text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    if channel is null or channel = '' or octet_length(channel) > 63 or channel ~ '[[:cntrl:]]' then
        raise exception '%', format('%L is not the name of a channel', channel) using
            errcode = 'invalid_name', hint = 'A name has 1 to 63 bytes and no control characters.';
    elsif channel ~* '^pg_?trickle' then
        raise exception '%', format('channel %s is reserved for pgtrickle', channel) using
            errcode = 'invalid_name', hint = 'Choose a name that does not begin with pgtrickle or pg_trickle.';
    end if;
end
$$;

-- check_may_notify: refuse a stream table that sends no notifications.
create or replace function pgtrickle_internal.check_may_notify(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if (select s.pooler_compatibility_mode from pgtrickle.pgt_stream_tables s where s.pgt_id = id) then
        raise exception '%', format('stream table %s is in pooler compatibility mode, in which refreshes send no notifications',
                pgtrickle_internal.shown_name(id)) using
            errcode = 'object_not_in_prerequisite_state',
            hint = format('Run select pgtrickle.alter_stream_table(%L, pooler_compatibility_mode => false), or poll '
                'pgtrickle.changes or pgtrickle.get_refresh_history.', pgtrickle_internal.shown_name(id));
    end if;
end
$$;

-- check_may_subscribe: refuse a role that may not read the stream table, and what can get no notifications.
create or replace function pgtrickle_internal.check_may_subscribe(id bigint, channel text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
begin
    perform pgtrickle_internal.check_channel(channel);
    if not pgtrickle_internal.may_read(current_user, id) then
        raise exception '%', format('you may not select from %s', pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege',
            hint = format('grant select on %s to %I', pgtrickle_internal.printed(relation_id), current_user);
    end if;
    perform pgtrickle_internal.check_may_notify(id);
end
$$;

-- check_not_subscribed: refuse to switch notifications off while somebody waits for them.
create or replace function pgtrickle_internal.check_not_subscribed(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    channels text := (select string_agg(quote_ident(s.channel), ', ' order by s.channel)
        from pgtrickle.pgt_subscriptions s where s.pgt_id = id);
begin
    if channels is not null then
        raise exception '%', format('pooler_compatibility_mode would end the notifications of %s on: %s',
                pgtrickle_internal.shown_name(id), channels) using
            errcode = 'object_not_in_prerequisite_state',
            hint = format('First run select pgtrickle.unsubscribe(%L, channel) for each of these channels.',
                pgtrickle_internal.shown_name(id));
    end if;
end
$$;

-- subscribe: notify a channel of each refresh that changes a stream table. Safe to run again.
create or replace function pgtrickle.subscribe(stream_table text, channel text) returns void
language plpgsql
as $$
begin
    perform pgtrickle_internal.open_channel(pgtrickle_internal.stream_table(stream_table), channel);
end
$$;
comment on function pgtrickle.subscribe(text, text) is
    E'Have every refresh that changes a stream table notify a channel when it commits. The payload is JSON with stream_table, '
    'inserted, deleted, refresh_id and data_timestamp, and no rows. Safe to run again. Call it with SELECT. You need SELECT on '
    'the stream table.\n'
    '\nstream_table: The stream table. Without a schema, it is looked up along your search_path.'
    '\nchannel: The channel, exactly as you give it. LISTEN folds names to lower case unless they are in double quotes.';

create or replace function pgtrickle_internal.open_channel(id bigint, channel text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.check_may_subscribe(id, channel);
    insert into pgtrickle_internal.own_subscriptions (pgt_id, channel) values (id, open_channel.channel)
    on conflict do nothing;
end
$$;

-- unsubscribe: no longer notify a channel. Safe to run again.
create or replace function pgtrickle.unsubscribe(stream_table text, channel text) returns void
language plpgsql
as $$
begin
    perform pgtrickle_internal.close_channel(pgtrickle_internal.stream_table(stream_table), channel);
end
$$;
comment on function pgtrickle.unsubscribe(text, text) is
    E'No longer notify a channel of the refreshes of a stream table. Safe to run again. Call it with SELECT. You must have '
    'subscribed, or own the stream table.\n'
    '\nstream_table: The stream table. Without a schema, it is looked up along your search_path.'
    '\nchannel: The channel, exactly as it was given to subscribe.';

create or replace function pgtrickle_internal.close_channel(id bigint, channel text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.relation_of(id);
    delete from pgtrickle_internal.own_subscriptions s where s.pgt_id = id and s.channel = close_channel.channel;
    if not found and exists (select from pgtrickle.subscriptions s
        where s.pgt_id = id and s.channel = close_channel.channel)
    then
        raise exception '%', format('channel %s was subscribed to %s by another role', channel, pgtrickle_internal.shown_name(id)) using
            errcode = 'insufficient_privilege', hint = 'Only that role and the owner of the stream table may unsubscribe it.';
    end if;
end
$$;

create or replace view pgtrickle.subscriptions with (security_barrier) as
select s.pgt_id, pgtrickle_internal.shown_name(s.pgt_id) as stream_table, s.channel,
    s.subscribed_by, s.subscribed_at,
    pgtrickle_internal.may_read(s.subscribed_by, s.pgt_id) as is_notified
from pgtrickle.pgt_subscriptions s
where pgtrickle_internal.may_register(s.pgt_id)
    or pgtrickle_internal.may_read(current_user, s.pgt_id);
comment on view pgtrickle.subscriptions is
    'The channels that refreshes notify. Everyone may read it; it shows those of stream tables that you may read.';
comment on column pgtrickle.subscriptions.pgt_id is 'The stream table, as in stream_tables_info.';
comment on column pgtrickle.subscriptions.stream_table is 'The stream table.';
comment on column pgtrickle.subscriptions.channel is 'The channel.';
comment on column pgtrickle.subscriptions.subscribed_by is 'The role that subscribed.';
comment on column pgtrickle.subscriptions.subscribed_at is 'When it did.';
comment on column pgtrickle.subscriptions.is_notified is
    'Whether refreshes notify the channel: not while the role that subscribed may not read the stream table.';

-- notify_subscribers: notify the channels of a stream table that a refresh changed. Runs as the sidecar's role, in the
-- transaction of the refresh, after its row in the history was written.
create or replace function pgtrickle_internal.notify_subscribers(id bigint, facts jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    channels text[] := array(select s.channel from pgtrickle.pgt_subscriptions s
        where s.pgt_id = id and pgtrickle_internal.may_read(s.subscribed_by, id) order by s.channel);
    payload text;
begin
    if channels = '{}' then
        return;
    end if;
    payload := jsonb_build_object('stream_table', facts -> 'stream_table', 'inserted', facts -> 'rows_inserted',
        'deleted', facts -> 'rows_deleted', 'data_timestamp', facts -> 'data_timestamp', 'refresh_id', (
            select h.refresh_id from pgtrickle.pgt_refresh_history h where h.pgt_id = id order by h.refresh_id desc limit 1))::text;
    perform pg_notify(channel, payload) from unnest(channels) channel;
end
$$;
