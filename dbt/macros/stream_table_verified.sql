{#
  Fails if a stream table does not equal PostgreSQL's own result of its query. The sidecar compares them, after it has
  applied what is pending, and the error shows some of the rows that differ.
#}
{% test stream_table_verified(model, timeout='1 h') %}
  {%- if execute and flags.WHICH in ('test', 'build') -%}
    {%- if model is string -%}
      {%- do exceptions.raise_compiler_error('stream_table_verified compares whole stream tables: remove `where`') -%}
    {%- endif -%}
    {%- do pgtrickle.require_pgtrickle() -%}
    {%- call statement('pgtrickle_leave_transaction', auto_begin=false) -%}commit{%- endcall -%}
    {%- do pgtrickle.call_procedure('pgtrickle.verify_stream_table(' ~ pgtrickle.sql_name(model) ~ ', '
        ~ pgtrickle.sql_text(timeout | string) ~ '::interval)') -%}
  {%- endif -%}
  select 1 as difference where false
{% endtest %}
