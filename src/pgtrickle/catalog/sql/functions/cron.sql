-- cron: when a stream table is defined, refuse what pgtrickle.scheduler.policy.cron cannot parse.

-- cron_field: the values that one field of a cron schedule matches. Raises 22023 with the invalid part.
create or replace function pgtrickle_internal.cron_field(
    schedule text, name text, part text, low integer, high integer, words text[]
) returns integer[]
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    atom text;
    pieces text[];
    wrong text;
    first_value integer;
    last_value integer;
    found integer[] := '{}';
begin
    foreach atom in array string_to_array(part, ',') loop
        wrong := null;
        pieces := regexp_match(atom,
            '^(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$');
        first_value := coalesce(array_position(words, pieces[1]) - 1 + low,
            case when pieces[1] ~ '^[0-9]+$' then pieces[1]::integer end);
        last_value := coalesce(array_position(words, pieces[2]) - 1 + low,
            case when pieces[2] ~ '^[0-9]+$' then pieces[2]::integer end);
        -- a week may also end on Sunday: fri-sun
        if words[1] = 'sun' and last_value = 0 and first_value > 0 then
            last_value := 7;
        end if;
        if pieces is null or (pieces[1] is not null and first_value is null)
            or (pieces[2] is not null and last_value is null)
        then
            wrong := 'cannot be read';
        elsif not coalesce(first_value, low) between low and high
            or not coalesce(last_value, high) between low and high
        then
            wrong := format('is not between %s and %s', low, high);
        elsif last_value < first_value then
            wrong := 'ends before it begins';
        elsif pieces[3]::integer = 0 then
            wrong := 'has a step of zero';
        end if;
        if wrong is not null then
            raise exception '%', format('%L is not a schedule: the %s %L %s', schedule, name, atom, wrong) using
                errcode = 'TS003', hint = pgtrickle_internal.cron_hint();
        end if;
        if last_value is null then
            last_value := case when first_value is not null and pieces[3] is null then first_value else high end;
        end if;
        found := found || array(select generate_series(
            coalesce(first_value, low), last_value, coalesce(pieces[3]::integer, 1)));
    end loop;
    return found;
end
$$;

create or replace function pgtrickle_internal.cron_hint() returns text
language sql immutable as $$
    select 'A cron schedule is: minute hour day month weekday, in UTC, such as */5 8-17 * * mon-fri; '
        'of six fields the first is the second; or @hourly, @daily, @weekly, @monthly, @yearly.'
$$;

-- check_cron: refuse a text that is not a cron schedule, or that names a day that no month has.
create or replace function pgtrickle_internal.check_cron(schedule text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    given text := lower(btrim(schedule, E' \t\n\r'));
    parts text[] := regexp_split_to_array(given, '\s+');
    days integer[];
    months integer[];
begin
    if given ~ '^@' then
        if given not in ('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly') then
            raise exception '%', format('%L is not a schedule: there is no %s', schedule, given) using
                errcode = 'TS003', hint = pgtrickle_internal.cron_hint();
        end if;
        return;
    end if;
    if cardinality(parts) = 5 then
        parts := '0'::text || parts;
    end if;
    perform pgtrickle_internal.cron_field(schedule, 'second', parts[1], 0, 59, '{}'),
        pgtrickle_internal.cron_field(schedule, 'minute', parts[2], 0, 59, '{}'),
        pgtrickle_internal.cron_field(schedule, 'hour', parts[3], 0, 23, '{}');
    days := pgtrickle_internal.cron_field(schedule, 'day of the month', parts[4], 1, 31, '{}');
    months := pgtrickle_internal.cron_field(schedule, 'month', parts[5], 1, 12,
        '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
    perform pgtrickle_internal.cron_field(schedule, 'day of the week', parts[6], 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
    if parts[4] !~ '^\*' and parts[6] ~ '^\*' and not exists (
        select from unnest(months) month
        where (select min(day) from unnest(days) day)
            <= ('{31,29,31,30,31,30,31,31,30,31,30,31}'::integer[])[month])
    then
        raise exception '%', format('%L never occurs: no such month has a day %s', schedule,
                (select min(day) from unnest(days) day)) using
            errcode = 'TS003',
            hint = 'Name a day that the month has. Instead of its last day, use the first day of the next.';
    end if;
end
$$;
