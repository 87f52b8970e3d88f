-- alerts: what happened, told to whoever listens, in the transaction in which it happened.
-- Every role of a database may listen, so an alert never holds a value from a row, nor the text of an error.

-- emit_alert: notify both channels, unless it is about a stream table in pooler compatibility mode.
-- Of `facts`, `pgt_id` says which stream table it is about; its name is added. Not for everybody to call.
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
    -- a full queue would make the commit fail, of whatever the alert is about
    if pg_notification_queue_usage() >= 0.5 then
        return;
    end if;
    -- PostgreSQL takes 8000 bytes
    if octet_length(told::text) > 7900 then
        told := jsonb_build_object('event', event, 'at', told -> 'at', 'pgt_id', told -> 'pgt_id',
            'stream_table', told -> 'stream_table', 'is_shortened', true);
    end if;
    perform pg_notify(channel, told::text) from unnest('{pg_trickle_alert,pgtrickle_alert}'::text[]) channel;
end
$$;
