-- publish_loads: say in the vitals of a sidecar how far its loads are; null if it loads nothing.
-- Writes: pgtrickle.pgt_sidecars.
update pgtrickle.pgt_sidecars set vitals = vitals || jsonb_build_object('loading', %(report)s::jsonb)
where sidecar_id = %(id)s
