{#
  For `loaded_at_query` of a source that is a stream table: `loaded_at_query: "{{ pgtrickle.loaded_at(this) }}"`. The age
  that `dbt source freshness` reports is the age of the oldest change that the stream table does not show yet.
#}
{% macro loaded_at(relation) %}
  {% do return("select now() - pgtrickle.get_staleness(" ~ pgtrickle.sql_name(relation) ~ ") * interval '1 s'") %}
{% endmacro %}
