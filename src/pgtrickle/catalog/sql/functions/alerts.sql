-- alerts: keep an event and notify listeners of it, in the transaction in which it happened.
-- Every role of a database can listen, so an alert never holds a value from a row or the text of an error.

-- emit_alert: keep the alert for those who poll, and notify both channels, unless it is about a stream table in pooler
-- compatibility mode. `pgt_id` in `facts` names the stream table; its name is added. The history already records
-- completed refreshes, so those are not kept again; one that changed rows also notifies the channels that were subscribed.
-- Only the sidecar's role can call it.
create or replace function pgtrickle_internal.emit_alert(event text, facts jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    name text;
    is_silent boolean := false;
    noticed_at timestamptz := clock_timestamp();
    -- only those who subscribed to the stream table are told
    told jsonb := jsonb_build_object('event', event, 'at', noticed_at) || (facts - 'data_timestamp');
begin
    if facts ? 'pgt_id' then
        select coalesce(pgtrickle_internal.printed(s.pgt_relid), format('%I.%I', s.pgt_schema, s.pgt_name)),
            s.pooler_compatibility_mode
        into name, is_silent
        from pgtrickle.pgt_stream_tables s where s.pgt_id = (facts ->> 'pgt_id')::bigint;
        told := told || jsonb_build_object('stream_table', name);
    end if;
    if event <> 'refresh_completed' then
        insert into pgtrickle.pgt_alerts (at, event, pgt_id, details)
        values (noticed_at, event, (facts ->> 'pgt_id')::bigint, told - '{event,at,pgt_id}'::text[]);
    end if;
    -- a full queue would make the commit fail, and with it the work that the alert is about
    if is_silent or pg_notification_queue_usage() >= 0.5 then
        return;
    end if;
    -- PostgreSQL allows 8000 bytes
    if octet_length(told::text) > 7900 then
        told := jsonb_build_object('event', event, 'at', told -> 'at', 'pgt_id', told -> 'pgt_id',
            'stream_table', told -> 'stream_table', 'is_shortened', true);
    end if;
    perform pg_notify(channel, told::text) from unnest('{pg_trickle_alert,pgtrickle_alert}'::text[]) channel;
    if event = 'refresh_completed' and (facts -> 'rows_inserted' <> '0' or facts -> 'rows_deleted' <> '0') then
        perform pgtrickle_internal.notify_subscribers((facts ->> 'pgt_id')::bigint, facts || jsonb_build_object('stream_table', name));
    end if;
end
$$;

-- alerts: the alerts since a moment, oldest first.
create or replace function pgtrickle.alerts(since timestamptz default null) returns table (
    alert_id text, at timestamptz, event text, stream_table text, details jsonb)
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select a.id, a.at, a.event, a.stream_table, a.details from (
        select 'a' || k.alert_id as id, k.at, k.event, k.details ->> 'stream_table' as stream_table,
            k.details - 'stream_table' as details, k.alert_id as number
        from pgtrickle.pgt_alerts k where k.at >= coalesce(since, now() - interval '1 hour')
        union all
        select 'r' || h.refresh_id, h.end_time, 'refresh_completed', format('%I.%I', i.pgt_schema, i.pgt_name),
            jsonb_build_object('action', h.action, 'rows_inserted', h.rows_inserted, 'rows_deleted', h.rows_deleted,
                'milliseconds', round(h.duration_ms::numeric, 3), 'reason', h.reason), h.refresh_id
        from pgtrickle.visible_history h join pgtrickle.stream_tables_info i on i.pgt_id = h.pgt_id
        where h.status = 'COMPLETED' and h.end_time >= coalesce(since, now() - interval '1 hour')
    ) a order by a.at, a.number
$$;
comment on function pgtrickle.alerts(timestamptz) is
    E'The alerts since a moment, oldest first, for those who poll because notifications do not reach them: through a '
    'pooler, or for stream tables in pooler compatibility mode. Alerts are kept for a week, at most 10,000 of them; '
    'completed refreshes come from the history. An alert is visible once its transaction has committed, so poll from '
    'a little before the last one, and skip those whose alert_id you know. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\nsince: The moment; null for one hour ago.'
    '\nalert_id: Identifies the alert.'
    '\nat: When it happened.'
    '\nevent: What happened, for example refresh_failed, auto_suspended or stale_data.'
    '\nstream_table: The stream table that it is about; null if it is about something else.'
    '\ndetails: What else is known, as the notification says it. The reason of a refresh is shown to the owner only.';

-- moment: the moment that a text means: a timestamp, or a length of time before now.
create or replace function pgtrickle_internal.moment(given text) returns timestamptz
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    begin
        return now() - given::interval;
    exception when others then
        return given::timestamptz;
    end;
exception when others then
    raise exception '%', format('%L is neither a time nor a length of time', given) using
        errcode = 'invalid_parameter_value', hint = 'Write 10min, 2h or 1 day, or a time such as 2026-05-01 12:00.';
end
$$;
