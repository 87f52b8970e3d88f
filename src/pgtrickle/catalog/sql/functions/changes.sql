-- changes: read the rows that refreshes changed. The caller needs SELECT on the stream table.

-- may_read_changes: whether the caller may read all rows of a stream table. In a copy its OID means another table.
create or replace function pgtrickle_internal.may_read_changes(id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgtrickle.pgt_stream_tables s join pg_class c on c.oid = s.pgt_relid
        where s.pgt_id = id and has_schema_privilege(c.relnamespace, 'USAGE') and has_table_privilege(c.oid, 'SELECT')
            and not row_security_active(c.oid)) and not pgtrickle.is_copy()
$$;

-- check_may_read_changes: raise an error unless the caller can read all rows of the stream table. Runs as the caller.
create or replace function pgtrickle_internal.check_may_read_changes(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    relation_id oid := pgtrickle_internal.relation_of(id);
begin
    if pgtrickle_internal.may_read_changes(id) then
        return;
    end if;
    if has_table_privilege(relation_id, 'SELECT') and row_security_active(relation_id) then
        raise exception '%', format('row-level security hides rows of %s from you', pgtrickle_internal.printed(relation_id)) using
            errcode = 'insufficient_privilege', hint = 'Its changes are only for roles that may read all of its rows.';
    end if;
    raise exception '%', format('you may not select from %s', pgtrickle_internal.printed(relation_id)) using
        errcode = 'insufficient_privilege',
        hint = format('grant select on %s to %I', pgtrickle_internal.printed(relation_id), current_user);
end
$$;

-- refuse_unkept: refuse to read changes that are not kept. The functions below call it, too, where the table of a feed is
-- missing: it was dropped after their snapshot was taken.
create or replace function pgtrickle_internal.refuse_unkept(id bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    name text := pgtrickle_internal.shown_name(id);
begin
    raise exception '%', format('the changes of %s are not kept', name) using
        errcode = 'TS023',
        hint = format('To keep them from now on, run select pgtrickle.alter_stream_table(%L, keep_changes => ''1d'').', name);
end
$$;

-- newest_point: the point up to which a feed has recorded changes; null if changes are not kept.
create or replace function pgtrickle_internal.newest_point(id bigint) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    newest bigint;
begin
    if exists (select from pgtrickle.pgt_feeds f where f.pgt_id = id) then
        execute format('select max(point) from pgtrickle_internal.kept_changes_%s', id) into newest;
    end if;
    return coalesce(newest, (select f.kept_after from pgtrickle.pgt_feeds f where f.pgt_id = id));
exception when undefined_table then
    return null;
end
$$;

-- check_kept: refuse to read changes that are not kept, or after a point that is not one of this feed.
create or replace function pgtrickle_internal.check_kept(id bigint, since bigint) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    name text := pgtrickle_internal.shown_name(id);
    kept_after bigint := (select f.kept_after from pgtrickle.pgt_feeds f where f.pgt_id = id);
    newest bigint := pgtrickle_internal.newest_point(id);
    is_point boolean;
begin
    if kept_after is null or newest is null then
        perform pgtrickle_internal.refuse_unkept(id);
    end if;
    if since is null or since = kept_after then
        return;
    end if;
    execute format('select exists (select from pgtrickle_internal.kept_changes_%s where point = $1)', id)
    into is_point using since;
    if not is_point then
        raise exception '%', case
                when since < kept_after then format('changes of %s after point %s are no longer kept', name, since)
                else format('%s is not a point in the changes of %s', since, name) end using
            errcode = 'TS024',
            detail = format('They are kept after point %s, and the newest point is %s.', kept_after, newest),
            hint = format('Read the stream table again, and in the same transaction select pgtrickle.change_point(%L), '
                'to continue from there. To keep changes longer, raise keep_changes.', name);
    end if;
exception when undefined_table then
    perform pgtrickle_internal.refuse_unkept(id);
end
$$;

-- read_changes: the changes after a point. One statement calls it, so everything here sees one snapshot. The settings
-- make the text of every value exact, whatever the session has.
create or replace function pgtrickle_internal.read_changes(id bigint, since bigint, max_rows bigint) returns table (
    point bigint, batch bigint, change text, count bigint, data json, row_text text, refreshed_at timestamptz,
    is_last boolean, reason text)
language plpgsql stable set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO' set intervalstyle = 'postgres' set bytea_output = 'hex' set extra_float_digits = 1
    set timezone = 'UTC'
as $$
begin
    perform pgtrickle_internal.check_may_read_changes(id);
    perform pgtrickle_internal.check_kept(id, since);
    return query execute format('select v.point, v.batch, v.change, v.count, v.data, v.row_text, v.refreshed_at, v.is_last, '
        'v.reset_reason from pgtrickle_internal.kept_changes_%s v where v.point > $1 order by v.point limit $2', id)
    using coalesce(since, 0), max_rows;
exception when undefined_table then
    perform pgtrickle_internal.refuse_unkept(id);
end
$$;

create or replace function pgtrickle.changes(name text, since bigint default null, max_rows bigint default null)
returns table (point bigint, batch bigint, change text, count bigint, data json, row_text text,
    refreshed_at timestamptz, is_last boolean, reason text)
language sql stable
as $$ select * from pgtrickle_internal.read_changes(pgtrickle_internal.stream_table(name), since, max_rows) $$;
comment on function pgtrickle.changes(text, bigint, bigint) is
    E'The rows that refreshes inserted into a stream table and deleted from it, in order, as long as its option '
    'keep_changes keeps them. Call it with SELECT ... FROM. You need SELECT on the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.'
    '\nsince: Only what comes after this point. Null returns everything that is kept. A point that is no longer '
    'kept is an error.'
    '\nmax_rows: How many rows to return at most; null is no limit. Continue after the point of the last one.'
    '\npoint: The place of this row in the feed. Points grow; there are gaps between them.'
    '\nbatch: Rows with the same number come from the same refresh.'
    '\nchange: insert, delete, or reset: the content was replaced, so read the stream table again.'
    '\ncount: How many equal rows were inserted or deleted. 0 for a reset.'
    '\ndata: The row as JSON. Values of types that are not built into PostgreSQL are strings.'
    '\nrow_text: The row as the text of a record, with every value exact: row_text::sales is a row of sales.'
    '\nrefreshed_at: The time of the snapshot that the refresh read.'
    '\nis_last: Whether this is the last row of its refresh. After it, the rows add up to the stream table.'
    '\nreason: Why the feed was reset.';

create or replace function pgtrickle.change_point(name text) returns bigint
language plpgsql stable
as $$
declare
    id bigint := pgtrickle_internal.stream_table(name);
begin
    perform pgtrickle_internal.check_may_read_changes(id);
    perform pgtrickle_internal.check_kept(id, null);
    return pgtrickle_internal.newest_point(id);
end
$$;
comment on function pgtrickle.change_point(text) is
    E'The newest point in the changes of a stream table. In a REPEATABLE READ transaction, the rows of the stream table '
    'are its content at that point. Call it with SELECT. You need SELECT on the stream table.\n'
    '\nname: The stream table. Without a schema, it is looked up along your search_path.';
