-- windows: rows that were decoded after a refresh took its snapshot, in tables that this snapshot nevertheless sees:
-- rows that COPY FREEZE writes are visible to every transaction. Run as the sidecar's role.

-- fit_window: make an empty window table with the columns of the buffers of a source; returns its name. COPY FREEZE must
-- follow in the same transaction. The caller holds its advisory lock. Locks: ACCESS EXCLUSIVE on the table.
create or replace function pgtrickle_internal.fit_window(source oid, number integer) returns name
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
    set default_tablespace = '' set default_table_access_method = heap
as $$
declare
    window_name name := format('window_%s_%s', source, number);
    full_name text := format('pgtrickle_changes.%I', window_name);
    buffer text := format('pgtrickle_changes.changes_%s_0', source);
begin
    if pgtrickle_internal.window_columns(full_name) = pgtrickle_internal.window_columns(buffer) then
        execute format('truncate %s', full_name);
    else
        execute format('drop table if exists %s', full_name);
        execute format('create unlogged table %s (like %s)', full_name, buffer);
    end if;
    return window_name;
end
$$;

-- window_columns: the columns of a buffer or window table, in order.
create or replace function pgtrickle_internal.window_columns(table_name text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select string_agg(format('%s %s %s', a.attname, a.atttypid, a.attcollation), ',' order by a.attname)
    from pg_attribute a where a.attrelid = to_regclass(table_name) and a.attnum > 0 and not a.attisdropped
$$;

-- drop_windows: drop the window tables of a source.
create or replace function pgtrickle_internal.drop_windows(source oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    found_name name;
begin
    for found_name in
        select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'pgtrickle_changes' and c.relname ~ format('^window_%s_[0-9]+$', source)
    loop
        execute format('drop table pgtrickle_changes.%I', found_name);
    end loop;
end
$$;
