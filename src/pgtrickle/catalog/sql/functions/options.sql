-- options: check the options of a stream table. All functions raise 22023 with the invalid value.

-- schedule_seconds: the interval of a schedule in seconds; null for cron, 'calculated' and 'manual' (or null).
create or replace function pgtrickle_internal.schedule_seconds(schedule text) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    given text := lower(btrim(schedule, E' \t\n\r'));
    seconds numeric;
begin
    if given is null or given in ('calculated', 'manual') then
        return null;
    end if;
    if given ~ '^@' or given ~ '^\S+(\s+\S+){4,5}$' then
        perform pgtrickle_internal.check_cron(schedule);
        return null;
    end if;
    if given ~ '^[0-9]{1,9}$' then
        seconds := given::numeric;
    elsif given ~ '^([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d|w))+$' then
        select sum(part[1]::numeric * case part[2]
            when 'ms' then 0.001 when 's' then 1 when 'm' then 60
            when 'h' then 3600 when 'd' then 86400 when 'w' then 604800 end)
        into seconds
        from regexp_matches(given, '([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)', 'g') as part;
    end if;
    if seconds is null or seconds < 0.1 or seconds > 315576000 then
        raise exception '%', case when seconds is null then format('%L is not a schedule', schedule)
                else format('the interval %L is not between 100ms and ten years', schedule) end using
            errcode = 'TS003',
            hint = 'Use an interval such as 500ms, 1s, 5m or 1h30m (a bare number is seconds), cron such as '
                '*/5 * * * * or @hourly, ''calculated'' or ''manual''.';
    end if;
    return seconds;
end
$$;

-- one_of: the value in the spelling of the catalog, if it is one of those allowed.
create or replace function pgtrickle_internal.one_of(option text, value text, allowed text[]) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    found text;
begin
    select a into found from unnest(allowed) a where lower(a) = lower(btrim(value));
    if value is not null and found is null then
        raise exception '%', format('%L is not a value of %s', value, option) using
            errcode = 'invalid_parameter_value',
            hint = 'Use one of ' || array_to_string(allowed, ', ') || '.';
    end if;
    return found;
end
$$;

-- timeout_seconds: a duration in seconds; 0 for 'none', -1 for 'default', null if the option is not given.
create or replace function pgtrickle_internal.timeout_seconds(option text, value text) returns double precision
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    given text := lower(btrim(value, E' \t\n\r'));
    seconds double precision;
begin
    if given is null then
        return null;
    elsif given in ('default', '-1') then
        return -1;
    elsif given in ('none', 'off', '0') then
        return 0;
    elsif given ~ '^[0-9]{1,9}(\.[0-9]{1,6})?$' then
        seconds := given;
    else
        begin
            seconds := extract(epoch from given::interval);
        exception when others then
            seconds := null;
        end;
    end if;
    if seconds is null or seconds not between 0.1 and 315576000 then
        raise exception '%', format('%L is not a value of %s', value, option) using
            errcode = 'invalid_parameter_value',
            hint = 'Use a length of time from 100ms to ten years, such as 30s, 5min or 1h30m (a bare number is '
                'seconds), ''none'' for no limit, or ''default''.';
    end if;
    return seconds;
end
$$;

-- options: all options, checked, as the catalog stores them; null means not given.
create or replace function pgtrickle_internal.options(
    schedule text, refresh_mode text, initialize boolean, diamond_consistency text,
    diamond_schedule_policy text, cdc_mode text, append_only boolean, pooler_compatibility_mode boolean,
    tier text default null, refresh_timeout text default null, on_divergence text default null,
    keep_changes text default null, auxiliary_results text default null
) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgtrickle_internal.schedule_seconds(schedule);
    perform pgtrickle_internal.keep_bounds(keep_changes);
    return jsonb_build_object(
        'schedule', coalesce(lower(btrim(schedule, E' \t\n\r')), 'manual'),
        'refresh_mode', pgtrickle_internal.one_of('refresh_mode', refresh_mode, '{AUTO,DIFFERENTIAL,FULL}'),
        'initialize', initialize,
        'diamond_consistency',
            pgtrickle_internal.one_of('diamond_consistency', diamond_consistency, '{none,atomic}'),
        'diamond_schedule_policy',
            pgtrickle_internal.one_of('diamond_schedule_policy', diamond_schedule_policy, '{fastest,slowest,default}'),
        'cdc_mode', pgtrickle_internal.one_of('cdc_mode', cdc_mode, '{trigger,wal,auto}'),
        'append_only', append_only,
        'pooler_compatibility_mode', pooler_compatibility_mode,
        'refresh_tier', pgtrickle_internal.one_of('tier', tier, '{hot,warm,cold,frozen}'),
        'refresh_timeout', pgtrickle_internal.timeout_seconds('refresh_timeout', refresh_timeout),
        'on_divergence', pgtrickle_internal.one_of('on_divergence', on_divergence, '{repair,stop}'),
        'keep_changes', lower(btrim(keep_changes, E' \t\n\r')),
        'auxiliary_results',
            pgtrickle_internal.one_of('auxiliary_results', auxiliary_results, '{auto,always,never}')
    );
end
$$;

-- session_settings: the settings of the caller's session that determine the meaning of a query. The names are
-- fixed here; the sidecar applies no others (postgres/settings.py has the same list).
create or replace function pgtrickle_internal.session_settings() returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select jsonb_object_agg(name, current_setting(name))
    from unnest(array['DateStyle', 'IntervalStyle', 'TimeZone', 'array_nulls', 'bytea_output',
        'default_text_search_config', 'extra_float_digits', 'lc_monetary', 'lc_numeric', 'lc_time',
        'quote_all_identifiers', 'timezone_abbreviations', 'xmlbinary', 'xmloption']) name
$$;
