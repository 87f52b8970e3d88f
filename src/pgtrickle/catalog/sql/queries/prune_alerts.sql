-- prune_alerts: keep the last `kept` alerts, and none older than `kept_for`. Forget episodes of what was dropped.
with forgotten as (
    delete from pgtrickle.pgt_episodes e
    where case e.event when 'stale_data' then not exists (select from pgtrickle.pgt_stream_tables s where s.pgt_id = e.subject)
        when 'publication_lag' then not exists (select from pgtrickle.pgt_subscribers s where s.subscriber_id = e.subject)
        else not exists (select from pgtrickle.pgt_sources s where s.source_relid::bigint = e.subject) end
)
delete from pgtrickle.pgt_alerts a
where a.at < now() - %(kept_for)s::interval
    or a.alert_id <= (select o.alert_id from pgtrickle.pgt_alerts o order by o.alert_id desc offset %(kept)s limit 1)
