-- refreshed_views: the stream tables that read a materialized view which was refreshed since we compared it.
-- Reads: pgtrickle.pgt_dependencies, pgtrickle.pgt_sources, pg_class.  Locks: nothing.
select d.pgt_id from pgtrickle.pgt_dependencies d
join pgtrickle.pgt_sources s on s.source_relid = d.source_relid
where d.source_type = 'materialized_view'
    and s.version is distinct from pgtrickle.source_version(d.source_relid)
