-- table_detail: the columns, the options, the sources and the readers of one stream table. Every role may run it.
select
    array(select array[a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)]
        from pg_catalog.pg_attribute a
        where a.attrelid = s.pgt_relid and a.attnum > 0 and not a.attisdropped order by a.attnum),
    pg_catalog.jsonb_build_object('schedule', coalesce(i.schedule, 'manual'), 'refresh_mode', i.refresh_mode,
        'initialize', s.initialize, 'diamond_consistency', s.diamond_consistency,
        'diamond_schedule_policy', s.diamond_schedule_policy, 'cdc_mode', i.cdc_mode, 'append_only', i.append_only,
        'pooler_compatibility_mode', i.pooler_compatibility_mode, 'tier', i.refresh_tier,
        'refresh_timeout', i.refresh_timeout, 'on_divergence', i.on_divergence, 'keep_changes', i.keep_changes,
        'auxiliary_results', i.auxiliary_results),
    array(select pg_catalog.format('%%I.%%I', r.pgt_schema, r.pgt_name)
        from pgtrickle.pgt_dependencies d join pgtrickle.stream_tables_info r on r.pgt_id = d.pgt_id
        where d.source_relid = s.pgt_relid and d.source_type = 'stream_table' order by 1)
from pgtrickle.stream_tables_info i join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id
where s.pgt_id = pgtrickle_internal.find_stream_table(%(name)s)
