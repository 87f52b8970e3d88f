-- decoded: changes of tables in other databases that were decoded from their log. The log has only the key of an old row,
-- so the copy tells what it was. Run as the sidecar's role.

-- create_decoded: a temporary table for what became of rows: d1 to dm is the key of a row before, `is_known` whether the
-- copy must have it, `is_gone` whether it no longer exists. Otherwise k1 to kn are its values now, for the columns `names`,
-- except those at the places `kept`: they did not change, and are those of the row of the copy whose key is o1 to om.
create or replace function pgtrickle_internal.create_decoded(source oid, names name[], key name[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning
as $$
begin
    execute format('drop table if exists pg_temp.decoded_%s', source);
    execute format('create temporary table decoded_%s (is_known boolean, is_gone boolean, kept integer[]%s%s) on commit drop', source, (
            select string_agg(format(', d%s %s, o%s %s', k.position, d.declared, k.position, d.declared), '' order by k.position)
            from unnest(key) with ordinality as k(name, position)
            join pgtrickle_internal.declared_columns(source) d on d.column_name = k.name), (
            select string_agg(format(', k%s %s', n.position, d.declared), '' order by n.position)
            from unnest(names) with ordinality as n(name, position)
            join pgtrickle_internal.declared_columns(source) d on d.column_name = n.name));
end
$$;

-- expand_decoded: turn what became of rows, in pg_temp.decoded_N, into change rows in pg_temp.incoming_N: the rows that the
-- copy has with weight -1, and those of now with +1. Keys are matched as text, too: two values that are equal may be different
-- keys. Raises if the copy does not have the rows that it should.
create or replace function pgtrickle_internal.expand_decoded(source oid, names name[], key name[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
    set extra_float_digits = 1 set datestyle = 'ISO' set intervalstyle = 'postgres'
as $$
declare
    copy constant text := pgtrickle_internal.copy_of(source);
    missing bigint;
begin
    execute format('analyze pg_temp.decoded_%s', source);
    execute (
        select format($body$
            with before as materialized (
                select d.ctid as place, d.is_known, c.* from pg_temp.decoded_%1$s d
                left join lateral (select true as is_found%2$s from %3$s c where %4$s offset 0) c on true
            ), removed as (
                insert into pg_temp.incoming_%1$s (xid, weight%5$s)
                select '4'::xid8, -1%5$s from before b where b.is_found
            ), added as (
                insert into pg_temp.incoming_%1$s (xid, weight%5$s)
                select '4'::xid8, 1%6$s from pg_temp.decoded_%1$s d
                left join lateral (select true as is_found%2$s from %3$s c where d.kept <> '{}' and %7$s offset 0) o on true
                where not d.is_gone and (d.kept = '{}' or o.is_found)
                returning 1
            )
            select (select count(*) from before b where b.is_found is distinct from nullif(b.is_known, false))
                + (select count(*) from pg_temp.decoded_%1$s d where not d.is_gone) - (select count(*) from added)
            $body$, source,
            string_agg(format(', c.%I as k%s', n.name, n.position), '' order by n.position), copy,
            (select string_agg(format('c.%I = d.d%s', k.name, k.position), ' and ' order by k.position)
                || format(' and row(%s)::text = row(%s)::text', string_agg(format('c.%I', k.name), ', ' order by k.position),
                    string_agg(format('d.d%s', k.position), ', ' order by k.position))
                from unnest(key) with ordinality as k(name, position)),
            string_agg(format(', k%s', n.position), '' order by n.position),
            string_agg(format(', case when %s = any (d.kept) then o.k%s else d.k%s end', n.position, n.position, n.position), '' order by n.position),
            (select string_agg(format('c.%I = d.o%s', k.name, k.position), ' and ' order by k.position)
                || format(' and row(%s)::text = row(%s)::text', string_agg(format('c.%I', k.name), ', ' order by k.position),
                    string_agg(format('d.o%s', k.position), ', ' order by k.position))
                from unnest(key) with ordinality as k(name, position)))
        from unnest(names) with ordinality as n(name, position)
    ) into missing;
    if missing <> 0 then
        raise exception '%', format('%s rows of %s are not in the copy of them as they should be', missing, pgtrickle_internal.printed(source))
        using errcode = 'TR002', hint = 'The copy is compared with the table, and corrected.';
    end if;
end
$$;

-- lock_attached: follow the log of an attached database alone, until the transaction ends.
create or replace function pgtrickle_internal.lock_attached(alias text) returns void
language sql volatile set search_path = pg_catalog, pg_temp
as $$ select pg_advisory_xact_lock(1885828215, hashtext(alias)) $$;
