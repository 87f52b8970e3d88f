-- publish_vitals: record the vitals of a sidecar, and remove sidecars that have reported nothing for long.
-- Writes: pgtrickle.pgt_sidecars.
with gone as (
    delete from pgtrickle.pgt_sidecars s
    where s.seen_at < now() - %(forgotten_after)s::interval and s.sidecar_id <> %(id)s
)
insert into pgtrickle.pgt_sidecars as s (sidecar_id, host, process, version, workers, busy, queued, vitals)
values (%(id)s, %(host)s, %(process)s, %(version)s, %(workers)s, %(busy)s, %(queued)s, %(vitals)s)
on conflict (sidecar_id) do update set seen_at = now(), workers = excluded.workers, busy = excluded.busy,
    queued = excluded.queued, vitals = excluded.vitals
