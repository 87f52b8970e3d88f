{# A text as a literal. The tag is a hash of the text, so the text cannot contain it. #}
{% macro sql_text(text) %}
  {% set tag = '$pgtrickle_' ~ local_md5(text) ~ '$' %}
  {% do return(tag ~ text ~ tag) %}
{% endmacro %}


{# A value of a config as a literal. #}
{% macro sql_value(value) %}
  {% if value is boolean %}
    {% do return('true' if value else 'false') %}
  {% endif %}
  {% do return(pgtrickle.sql_text(value | string)) %}
{% endmacro %}


{# The name of a relation as the functions of pgtrickle take it: a literal that holds the quoted schema and name. #}
{% macro sql_name(relation) %}
  {% do return(pgtrickle.sql_text(relation.include(database=false).render())) %}
{% endmacro %}


{# The value of a query that returns one JSON document. #}
{% macro query_json(query) %}
  {% do return(fromjson(run_query(query).columns[0].values()[0])) %}
{% endmacro %}


{#
  Begin and commit by statements of our own. dbt leaves both to the driver, which believes itself in a transaction for
  the rest of the connection once dbt has sent COMMIT.
#}
{% macro begin_transaction() %}
  {% call statement('pgtrickle_begin') %}begin{% endcall %}
{% endmacro %}

{% macro commit_transaction() %}
  {% call statement('pgtrickle_commit', auto_begin=false) %}commit{% endcall %}
  {% do adapter.commit() %}
{% endmacro %}

{# Run a procedure that commits by itself. Call it after a commit. #}
{% macro call_procedure(call) %}
  {% call statement('pgtrickle_call', auto_begin=false) %}call {{ call }}{% endcall %}
{% endmacro %}
