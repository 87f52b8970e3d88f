-- function_sources: the name and the source of every function of pgtrickle, so that its errors can be listed.
-- Reads: the catalog of PostgreSQL.
select p.proname::text, p.prosrc from pg_proc p
where p.pronamespace in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace) and p.prosrc is not null
order by 1
