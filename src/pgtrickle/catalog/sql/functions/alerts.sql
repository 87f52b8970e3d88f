-- alerts: notify listeners of an event, in the transaction in which it happened.
-- Every role of a database can listen, so an alert never holds a value from a row or the text of an error.

-- emit_alert: notify both channels, unless the alert is about a stream table in pooler compatibility mode.
-- `pgt_id` in `facts` names the stream table; its name is added. Only the sidecar's role can call it.
create or replace function pgtrickle_internal.emit_alert(event text, facts jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    about record;
    told jsonb := jsonb_build_object('event', event, 'at', clock_timestamp()) || facts;
begin
    if facts ? 'pgt_id' then
        select coalesce(pgtrickle_internal.printed(s.pgt_relid), format('%I.%I', s.pgt_schema, s.pgt_name)) as name,
            s.pooler_compatibility_mode as is_silent
        into about
        from pgtrickle.pgt_stream_tables s where s.pgt_id = (facts ->> 'pgt_id')::bigint;
        if about.is_silent then
            return;
        end if;
        told := told || jsonb_build_object('stream_table', about.name);
    end if;
    -- a full queue would make the commit fail, and with it the work that the alert is about
    if pg_notification_queue_usage() >= 0.5 then
        return;
    end if;
    -- PostgreSQL allows 8000 bytes
    if octet_length(told::text) > 7900 then
        told := jsonb_build_object('event', event, 'at', told -> 'at', 'pgt_id', told -> 'pgt_id',
            'stream_table', told -> 'stream_table', 'is_shortened', true);
    end if;
    perform pg_notify(channel, told::text) from unnest('{pg_trickle_alert,pgtrickle_alert}'::text[]) channel;
end
$$;
