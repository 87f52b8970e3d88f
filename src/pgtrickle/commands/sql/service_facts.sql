-- service_facts: the database, its version of pgtrickle, whether a sidecar serves it, and whether it is drained.
select pg_catalog.current_database(), pgtrickle.version(), pgtrickle_internal.is_served(),
    pgtrickle_internal.is_draining()
