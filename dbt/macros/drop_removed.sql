{#
  `dbt run-operation drop_removed_stream_tables`: drop the stream tables that this project created in this target and
  that no model, seed or snapshot of the project has the name of any more. All or nothing.
  With `--args '{dry_run: true}'`, only show them.
#}
{% macro drop_removed_stream_tables(dry_run=false) %}
  {% if not execute %}
    {% do return([]) %}
  {% endif %}
  {% do pgtrickle.require_pgtrickle() %}
  {% if not pgtrickle.has_registry() %}
    {% do print('This project has created no stream tables in schema ' ~ target.schema ~ '.') %}
    {% do return([]) %}
  {% endif %}
  {% do pgtrickle.begin_transaction() %}
  {% set kept = pgtrickle.names_in_project() %}
  {% set dropped = [] %}
  {% for table in pgtrickle.created_stream_tables() if [table.schema, table.name] not in kept %}
    {% do dropped.append(table.printed) %}
    {% if dry_run %}
      {% do print('would drop stream table ' ~ table.printed ~ ' (' ~ table.model ~ ')') %}
    {% else %}
      {% do run_query('select pgtrickle.drop_stream_table(' ~ pgtrickle.sql_text(table.printed) ~ ')') %}
      {% do print('dropped stream table ' ~ table.printed ~ ' (' ~ table.model ~ ')') %}
    {% endif %}
  {% endfor %}
  {% if not dropped %}
    {% do print('There are no stream tables to drop.') %}
  {% endif %}
  {% if not dry_run %}
    {% call statement('forget_dropped') %}
      delete from {{ pgtrickle.registry() }} r where not exists (
        select from pgtrickle.pgt_stream_tables s where s.pgt_id = r.stream_table_id and s.created_at = r.created_at)
    {% endcall %}
  {% endif %}
  {% do pgtrickle.commit_transaction() %}
  {% do return(dropped) %}
{% endmacro %}


{# Schema and name of everything that the project builds. Without quotes, PostgreSQL folds a name to lower case. #}
{% macro names_in_project() %}
  {% set names = [] %}
  {% for node in graph.nodes.values() if node.resource_type in ('model', 'seed', 'snapshot') %}
    {% for schema in (node.schema, node.schema | lower) %}
      {% do names.extend([[schema, node.alias], [schema, node.alias | lower]]) %}
    {% endfor %}
  {% endfor %}
  {% do return(names) %}
{% endmacro %}


{# The stream tables that this project created in this target, readers before what they read. #}
{% macro created_stream_tables() %}
  {% do return(pgtrickle.query_json("
    with recursive depths(pgt_id, depth) as (
      select s.pgt_id, 0 from pgtrickle.pgt_stream_tables s
      union
      select d.pgt_id, u.depth + 1 from depths u
      join pgtrickle.pgt_stream_tables s on s.pgt_id = u.pgt_id
      join pgtrickle.pgt_dependencies d on d.source_relid = s.pgt_relid and d.source_type = 'stream_table'
    )
    select coalesce(json_agg(json_build_object('schema', i.pgt_schema, 'name', i.pgt_name,
      'printed', format('%I.%I', i.pgt_schema, i.pgt_name), 'model', r.model)
      order by (select max(d.depth) from depths d where d.pgt_id = s.pgt_id) desc, s.pgt_id desc), '[]')::text
    from " ~ pgtrickle.registry() ~ " r
    join pgtrickle.pgt_stream_tables s on s.pgt_id = r.stream_table_id and s.created_at = r.created_at
    join pgtrickle.stream_tables_info i on i.pgt_id = s.pgt_id
    where r.project = " ~ pgtrickle.sql_text(project_name))) %}
{% endmacro %}
