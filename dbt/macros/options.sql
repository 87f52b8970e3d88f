{#
  The options of a stream table. A model sets them in its config under these names, or in `meta` under these names.
  The value here is the default, which a model gets back when its config no longer sets the option.
#}
{% macro stream_table_options() %}
  {% do return({
    'schedule': 'calculated',
    'refresh_mode': 'AUTO',
    'initialize': true,
    'diamond_consistency': 'atomic',
    'diamond_schedule_policy': 'default',
    'cdc_mode': 'trigger',
    'append_only': false,
    'pooler_compatibility_mode': false,
    'tier': 'hot',
    'refresh_timeout': 'default',
    'on_divergence': 'repair',
    'keep_changes': 'off',
    'auxiliary_results': 'auto',
  }) %}
{% endmacro %}


{# The value of an option in the config of the current model; `default` if it is not set. #}
{% macro stream_table_option(name, default=none) %}
  {% set given = model.config.get(name) %}
  {% if given is none %}
    {% set given = (model.config.get('meta') or {}).get(name) %}
  {% endif %}
  {% do return(default if given is none else given) %}
{% endmacro %}


{# The options of the current model as arguments of create_or_replace_stream_table. #}
{% macro stream_table_arguments() %}
  {% set arguments = [] %}
  {% for name, default in pgtrickle.stream_table_options().items() %}
    {% set value = pgtrickle.stream_table_option(name, default) %}
    {% do arguments.append(name ~ ' => ' ~ pgtrickle.sql_value(value)) %}
  {% endfor %}
  {% do return(arguments | join(', ')) %}
{% endmacro %}


{# How long to wait until a stream table is loaded; none if `wait_timeout` is 0, which means not to wait. #}
{% macro stream_table_wait_timeout() %}
  {% set timeout = pgtrickle.stream_table_option('wait_timeout', '10 min') | string %}
  {% do return(none if timeout == '0' else timeout) %}
{% endmacro %}
