-- withdraw: remove a sidecar that stops, and note when it was last seen.
-- Writes: pgtrickle.pgt_sidecars, pgtrickle.pgt_last_sidecar.
with gone as (
    delete from pgtrickle.pgt_sidecars where sidecar_id = %(id)s
)
insert into pgtrickle.pgt_last_sidecar as l (seen_at) values (clock_timestamp())
on conflict (is_only) do update set seen_at = excluded.seen_at
