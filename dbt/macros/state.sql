{# Fail with instructions unless pgtrickle is installed in the database. #}
{% macro require_pgtrickle() %}
  {% set found = pgtrickle.query_json("select json_build_object('is_installed', "
      ~ "to_regprocedure('pgtrickle.verify_stream_table(text, interval)') is not null)::text") %}
  {% if not found.is_installed %}
    {% do exceptions.raise_compiler_error('pgtrickle is not installed in database ' ~ target.database ~ ', or is older than '
        ~ 'this package. Install it with `pgtrickle install`, then start a sidecar with `pgtrickle run`.') %}
  {% endif %}
{% endmacro %}


{#
  What the database has under the name of a relation: `kind` as in pg_class, or none, and the stream table of that name
  in `id`, or none. `has_table` is false if somebody dropped the table of the stream table. `has_lost_source` is true if
  somebody dropped or renamed what it reads, as dbt does with each view and table that it builds again. `definition`
  changes with its query and options. `project` is the dbt project that created it, or none.
#}
{% macro stream_table_state(relation) %}
  {% set name = pgtrickle.sql_name(relation) %}
  {% do return(pgtrickle.query_json("
    select json_build_object(
      'kind', (select c.relkind::text from pg_catalog.pg_class c where c.oid = to_regclass(" ~ name ~ ")),
      'id', s.pgt_id, 'has_table', c.oid is not null, 'status', s.status, 'is_populated', s.is_populated,
      'needs_reinit', s.needs_reinit, 'last_error', i.last_error, 'project', " ~ pgtrickle.registered_project() ~ ",
      'has_lost_source', exists (
          select from pgtrickle.pgt_dependencies d
          where d.pgt_id = s.pgt_id and d.source_type <> 'function' and not exists (
            select from pg_catalog.pg_class r join pg_catalog.pg_namespace n on n.oid = r.relnamespace
            where r.oid = d.source_relid and r.relname = d.source_name and n.nspname = d.source_schema)),
      'definition', md5(row(s.defining_query, s.settings, s.schedule, s.refresh_mode, s.initialize,
          s.diamond_consistency, s.diamond_schedule_policy, s.cdc_mode, s.append_only, s.pooler_compatibility_mode,
          s.refresh_tier, i.refresh_timeout, s.on_divergence, s.keep_changes, s.auxiliary_results)::text))::text
    from (select) one
    left join (pgtrickle.pgt_stream_tables s
        join pgtrickle.stream_tables_info i on i.pgt_id = s.pgt_id
        left join pg_catalog.pg_class c on c.oid = s.pgt_relid)
      on s.pgt_relid = to_regclass(" ~ name ~ ")
        or c.oid is null and array[s.pgt_schema, s.pgt_name]::text[] = parse_ident(" ~ name ~ ")
    order by c.oid is null limit 1")) %}
{% endmacro %}
