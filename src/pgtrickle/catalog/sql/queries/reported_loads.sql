-- reported_loads: how far a sidecar is with loads, if the stream table `id` is among them. Every role may run it.
select (l.report ->> 'rows_read')::bigint, (l.report ->> 'rows_staged')::bigint,
    (l.report ->> 'rows_expected')::bigint, (l.report ->> 'is_reading')::boolean
from pgtrickle.server_worker_inventory i
cross join lateral (select i.vitals -> 'loading') l(report)
where i.is_alive and l.report -> 'tables' @> to_jsonb(%(id)s::bigint)
limit 1
