{#
  A model as a stream table of pgtrickle.

  One transaction creates or alters it, another one what belongs to it; then the run waits until the sidecar has loaded
  it. Readers always find it: a changed query, changed columns and --full-refresh are applied in place.
#}
{% materialization stream_table, adapter='postgres' %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- do pgtrickle.require_pgtrickle() -%}
  {%- do pgtrickle.check_stream_table_contract(sql) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {%- do pgtrickle.begin_transaction() -%}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set before = pgtrickle.forget_lost_table(target_relation, pgtrickle.stream_table_state(target_relation)) -%}
  {%- do pgtrickle.check_project(target_relation, before) -%}
  {%- set is_taken = before.id is none and before.kind is not none -%}
  {%- set replaced = pgtrickle.relation_to_replace(target_relation, before.kind) if is_taken -%}
  {#- what has the name stays in place until the stream table is loaded -#}
  {%- set relation = make_intermediate_relation(target_relation) if is_taken else target_relation -%}
  {%- set after = pgtrickle.define_stream_table(relation, sql) -%}
  {#- other columns can lock the table until here -#}
  {%- do pgtrickle.commit_transaction() -%}
  {%- do pgtrickle.begin_transaction() -%}
  {%- do pgtrickle.apply_stream_table_indexes(relation) -%}
  {%- do pgtrickle.apply_stream_table_grants(relation) -%}
  {%- do persist_docs(relation, model) -%}
  {%- do pgtrickle.commit_transaction() -%}

  {%- do pgtrickle.wait_for_stream_table(relation, before, after) -%}
  {%- if is_taken -%}
    {%- do pgtrickle.replace_relation(replaced, relation, target_relation) -%}
  {%- endif -%}

  {%- do pgtrickle.begin_transaction() -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {%- do pgtrickle.commit_transaction() -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{# Remove what is left of a stream table whose table somebody dropped; returns the state without it. #}
{% macro forget_lost_table(relation, state) %}
  {% if state.id is not none and not state.has_table %}
    {# the sidecar removes it too, and may have been faster #}
    {% do run_query('do $pgtrickle_forget$ begin perform pgtrickle.drop_stream_table(' ~ pgtrickle.sql_name(relation)
        ~ "); exception when sqlstate 'TS002' then null; end $pgtrickle_forget$") %}
    {% do return(pgtrickle.stream_table_state(relation)) %}
  {% endif %}
  {% do return(state) %}
{% endmacro %}


{# Create or alter the stream table in the current transaction; returns its state. #}
{% macro define_stream_table(relation, sql) %}
  {% set name = pgtrickle.sql_name(relation) %}
  {% set earlier = pgtrickle.stream_table_state(relation) %}
  {% if earlier.id is none and earlier.kind is not none %}
    {% do exceptions.raise_compiler_error(relation ~ ' is in the way: drop or rename it') %}
  {% endif %}
  {% do pgtrickle.let_sidecar_use_schema(relation) %}
  {% call statement('main') %}
    {{ config.get('sql_header') or '' }}
    select pgtrickle.create_or_replace_stream_table({{ name }}, {{ pgtrickle.sql_text(sql) }},
      {{ pgtrickle.stream_table_arguments() }})
  {% endcall %}
  {% set after = pgtrickle.stream_table_state(relation) %}
  {% set change = 'CREATE' if earlier.id is none else 'ALTER' if after.definition != earlier.definition else 'UNCHANGED' %}
  {% if earlier.id is none %}
    {% do pgtrickle.register_stream_table(after.id) %}
  {% elif (should_full_refresh() and after.is_populated) or after.has_lost_source %}
    {# binds its sources by their names again, and has the sidecar load it #}
    {% do run_query('select pgtrickle.repair_stream_table(' ~ name ~ ')') %}
    {% set change = 'RELOAD' %}
  {% endif %}
  {% set status = pgtrickle.stream_table_option('status') %}
  {% if status is not none and (status | upper == 'SUSPENDED') != (after.status == 'SUSPENDED') %}
    {% do run_query('select pgtrickle.alter_stream_table(' ~ name ~ ', status => ' ~ pgtrickle.sql_value(status) ~ ')') %}
  {% endif %}
  {% do store_raw_result(name='main', message=change ~ ' STREAM TABLE', code=change, rows_affected='-1') %}
  {% do return(pgtrickle.stream_table_state(relation)) %}
{% endmacro %}


{# The sidecar must be able to use the schema, which dbt may just have created. Only its owner can grant that. #}
{% macro let_sidecar_use_schema(relation) %}
  {% if pgtrickle.sidecar_lacks_schema(relation) %}
    {# two threads must not grant it at the same time #}
    {% do run_query("select pg_advisory_xact_lock(hashtext('pgtrickle dbt schema'))") %}
    {% if pgtrickle.sidecar_lacks_schema(relation) %}
      {% set sidecar = pgtrickle.query_json("select to_json(quote_ident(pg_get_userbyid(pgtrickle.sidecar_role())))::text") %}
      {% do run_query('grant usage on schema ' ~ relation.without_identifier().include(database=false) ~ ' to ' ~ sidecar) %}
    {% endif %}
  {% endif %}
{% endmacro %}

{% macro sidecar_lacks_schema(relation) %}
  {% do return(pgtrickle.query_json("
    select to_json(not has_schema_privilege(pgtrickle.sidecar_role(), n.oid, 'USAGE') and pg_has_role(n.nspowner, 'USAGE'))::text
    from pg_catalog.pg_namespace n where n.nspname = (parse_ident(" ~ pgtrickle.sql_name(relation) ~ "))[1]")) %}
{% endmacro %}


{#
  Wait until the sidecar has loaded the stream table; raises the error of pgtrickle. A stream table that is loaded and
  healthy needs no waiting.
#}
{% macro wait_for_stream_table(relation, before, after) %}
  {% set timeout = pgtrickle.stream_table_wait_timeout() %}
  {% set is_loaded = after.is_populated and not after.needs_reinit and after.status != 'ERROR' %}
  {% set should_load = pgtrickle.stream_table_option('initialize', true) or before.is_populated %}
  {% if after.status == 'SUSPENDED' %}
    {% if pgtrickle.stream_table_option('status') is none %}
      {% do exceptions.warn('stream table ' ~ relation ~ ' is suspended' ~ (': ' ~ after.last_error if after.last_error else '')
          ~ '. To resume it, set `status` to ACTIVE in the config of the model.') %}
    {% endif %}
  {% elif timeout is not none and should_load and not is_loaded %}
    {% do pgtrickle.call_procedure('pgtrickle.refresh_and_wait(' ~ pgtrickle.sql_name(relation) ~ ', '
        ~ pgtrickle.sql_text(timeout) ~ '::interval)') %}
  {% endif %}
{% endmacro %}


{# What has the name of a model and is not a stream table. Raises if dbt could not have made it. #}
{% macro relation_to_replace(relation, kind) %}
  {% set type = {'r': 'table', 'p': 'table', 'v': 'view', 'm': 'materialized_view'}.get(kind) %}
  {% if type is none %}
    {% do exceptions.raise_compiler_error(relation ~ ' is neither a table nor a view: drop or rename it') %}
  {% endif %}
  {% do return(relation.incorporate(type=type)) %}
{% endmacro %}


{# Give a loaded stream table the name of what it replaces, in one transaction, and drop that with its dependants. #}
{% macro replace_relation(old, loaded, target_relation) %}
  {% set backup = make_backup_relation(target_relation, old.type) %}
  {% do drop_relation_if_exists(load_cached_relation(backup)) %}
  {% do pgtrickle.begin_transaction() %}
  {% do adapter.rename_relation(old, backup) %}
  {% do adapter.rename_relation(loaded, target_relation) %}
  {% do pgtrickle.commit_transaction() %}
  {% do drop_relation_if_exists(backup) %}
{% endmacro %}
