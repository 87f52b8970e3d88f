{# Create the indexes of the config, and drop those that an earlier config had. The name of an index says what it is. #}
{% macro apply_stream_table_indexes(relation) %}
  {% set wanted = {} %}
  {% for given in config.get('indexes', []) %}
    {% set index = adapter.parse_index(given) %}
    {% set text = tojson([this.schema, this.identifier, index.columns, index.unique, index.type]) %}
    {% do wanted.update({'dbt_stream_' ~ local_md5(text): index}) %}
  {% endfor %}
  {% set existing = pgtrickle.query_json("
    select coalesce(json_agg(c.relname), '[]')::text from pg_catalog.pg_index x
    join pg_catalog.pg_class c on c.oid = x.indexrelid
    where x.indrelid = to_regclass(" ~ pgtrickle.sql_name(relation) ~ ")
      and c.relname ~ '^dbt_stream_[0-9a-f]{32}$'") %}
  {% for name in existing if name not in wanted %}
    {% do run_query('drop index ' ~ relation.incorporate(path={'identifier': name})) %}
  {% endfor %}
  {% for name, index in wanted.items() if name not in existing %}
    {% do run_query('create ' ~ ('unique ' if index.unique else '') ~ 'index "' ~ name ~ '" on ' ~ relation
        ~ (' using ' ~ index.type if index.type else '') ~ ' (' ~ index.columns | join(', ') ~ ')') %}
  {% endfor %}
{% endmacro %}


{# Grant and revoke as the config says. The privileges of the sidecar are not ours to revoke. #}
{% macro apply_stream_table_grants(relation) %}
  {% set wanted = config.get('grants') %}
  {% if wanted %}
    {% set sidecar = pgtrickle.query_json("select to_json(pg_get_userbyid(pgtrickle.sidecar_role()))::text") %}
    {% set present = {} %}
    {% for privilege, grantees in adapter.standardize_grants_dict(run_query(get_show_grant_sql(relation))).items() %}
      {% do present.update({privilege: grantees | reject('equalto', sidecar) | list}) %}
    {% endfor %}
    {% set statements = get_dcl_statement_list(relation, diff_of_two_dicts(present, wanted), get_revoke_sql)
        + get_dcl_statement_list(relation, diff_of_two_dicts(wanted, present), get_grant_sql) %}
    {% if statements %}
      {{ call_dcl_statements(statements) }}
    {% endif %}
  {% endif %}
{% endmacro %}


{# Check the columns of the query against an enforced contract. Constraints would make refreshes fail: say so. #}
{% macro check_stream_table_contract(sql) %}
  {% if config.get('contract').enforced %}
    {% set checked = get_assert_columns_equivalent(sql) %}
    {% set constrained = model.constraints or (model.columns.values() | selectattr('constraints') | list) %}
    {% if constrained %}
      {% do exceptions.warn('The constraints of ' ~ this ~ ' are not created: a row that violates one would make every '
          ~ 'refresh fail. Use tests instead.') %}
    {% endif %}
  {% endif %}
{% endmacro %}
