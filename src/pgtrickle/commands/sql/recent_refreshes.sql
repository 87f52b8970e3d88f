-- recent_refreshes: for each stream table, how long its last `limit` refreshes took that changed something or failed,
-- and the first letter of what each did, oldest first. A failure is X.
select pgtrickle_internal.shown_name(s.pgt_id), h.durations, h.letters
from pgtrickle.pgt_stream_tables s
cross join lateral (
    select array_agg(round(r.duration_ms::numeric, 1)::float8 order by r.refresh_id) as durations,
        string_agg(case r.status when 'FAILED' then 'X' else left(r.action, 1) end, '' order by r.refresh_id) as letters
    from (
        select v.refresh_id, v.duration_ms, v.status, v.action from pgtrickle.pgt_refresh_history v
        where v.pgt_id = s.pgt_id and (v.action <> 'NO_DATA' or v.status = 'FAILED')
        order by v.refresh_id desc limit %(limit)s
    ) r
) h
where h.letters is not null and (%(ids)s::bigint[] is null or s.pgt_id = any (%(ids)s::bigint[]))
