{#
  The table in which this package remembers which stream tables it created for which project, in the schema of the target:
  developers with schemas of their own keep apart. An id alone would not do: ids start again if pgtrickle is removed and
  installed again, so a row also holds the moment at which the stream table was created.
#}
{% macro registry() %}
  {% do return(api.Relation.create(database=target.database, schema=target.schema, identifier='dbt_stream_tables')) %}
{% endmacro %}


{# Create the registry unless it exists. #}
{% macro ensure_registry() %}
  {% set registry = pgtrickle.registry() %}
  {% if not pgtrickle.has_registry() %}
    {# two threads must not create it at the same time #}
    {% do run_query("select pg_advisory_xact_lock(hashtext('pgtrickle dbt registry'))") %}
    {% call statement('create_registry') %}
      create schema if not exists {{ registry.without_identifier().include(database=false) }};
      create table if not exists {{ registry }} (
        stream_table_id bigint, created_at timestamptz, project text not null, model text not null,
        primary key (stream_table_id, created_at));
      comment on table {{ registry }} is 'The stream tables that dbt created here. Written by the dbt package of pgtrickle.';
    {% endcall %}
  {% endif %}
{% endmacro %}


{% macro has_registry() %}
  {% do return(pgtrickle.query_json("select to_json(to_regclass(" ~ pgtrickle.sql_name(pgtrickle.registry())
      ~ ") is not null)::text")) %}
{% endmacro %}


{# An SQL expression for the project that created the stream table `s`; null if no project of this target did. #}
{% macro registered_project() %}
  {% if not pgtrickle.has_registry() %}
    {% do return('null') %}
  {% endif %}
  {% do return('(select r.project from ' ~ pgtrickle.registry() ~ ' r '
      ~ 'where r.stream_table_id = s.pgt_id and r.created_at = s.created_at)') %}
{% endmacro %}


{# Remember that the current model created a stream table. #}
{% macro register_stream_table(id) %}
  {% do pgtrickle.ensure_registry() %}
  {% call statement('register_stream_table') %}
    insert into {{ pgtrickle.registry() }} (stream_table_id, created_at, project, model)
    select s.pgt_id, s.created_at, {{ pgtrickle.sql_text(project_name) }}, {{ pgtrickle.sql_text(model.unique_id) }}
    from pgtrickle.pgt_stream_tables s where s.pgt_id = {{ id }}
  {% endcall %}
{% endmacro %}


{# Fail if another project created the stream table that the current model would change. #}
{% macro check_project(relation, state) %}
  {% if state.project is not none and state.project != project_name %}
    {% do exceptions.raise_compiler_error('stream table ' ~ relation ~ ' belongs to the dbt project ' ~ state.project
        ~ '. Give this model another alias or schema.') %}
  {% endif %}
{% endmacro %}
