-- trust: the sidecar evaluates queries of other roles and writes to their tables, as its own role. Code that other
-- roles can write would run with its privileges, so there must be none.
-- Trusted are built-in functions, and functions of a superuser or of a role that may act as the sidecar. The
-- functions of an extension belong to the superuser or administrator who created it. SECURITY DEFINER functions
-- are no exception: they share the sidecar's session, and could leave another search_path, temporary tables or
-- prepared statements in it.

-- is_trusted: whether a role may act as the sidecar anyway. Since PostgreSQL 16, membership alone does not imply
-- that.
create or replace function pgtrickle_internal.is_trusted(owner_id oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select coalesce((select r.rolsuper or case
        when current_setting('server_version_num')::integer < 160000
            then pg_has_role(r.oid, pgtrickle.sidecar_role(), 'MEMBER')
        else pg_has_role(r.oid, pgtrickle.sidecar_role(), 'USAGE')
            or pg_has_role(r.oid, pgtrickle.sidecar_role(), 'SET')
            or pg_has_role(r.oid, pgtrickle.sidecar_role(), 'MEMBER WITH ADMIN OPTION') end
    from pg_roles r where r.oid = owner_id), false)
$$;

-- untrusted_functions: the functions of untrusted roles, among the given objects and everything they rely on.
create or replace function pgtrickle_internal.untrusted_functions(classids oid[], objids oid[]) returns setof oid
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    select distinct p.oid
    from pgtrickle_internal.closure_of(classids, objids) c
    join pg_proc p on p.oid = c.objid
    where c.classid = 'pg_proc'::regclass and not pgtrickle_internal.is_trusted(p.proowner)
$$;

-- attached_trees: the expressions of tables that reference a user-defined object, each with the name of its
-- index, constraint or the like. Most reference none and are skipped at once: every write to a stream table calls
-- this. Planning takes longer than executing, so the plan must work for all tables.
create or replace function pgtrickle_internal.attached_trees(relation_ids oid[])
returns table (relation_id oid, what text, tree text)
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    return query select t.id, t.what, t.tree from (
        select e.adrelid, format('column %I', a.attname), e.adbin::text
        from pg_attrdef e join pg_attribute a on a.attrelid = e.adrelid and a.attnum = e.adnum
        where e.adrelid = any (relation_ids)
        union all
        select k.conrelid, format('constraint %I', k.conname), k.conbin::text from pg_constraint k
        where k.conrelid = any (relation_ids) and k.conbin is not null
        union all
        select i.indrelid, format('index %I', c.relname), concat(i.indexprs::text, i.indpred::text)
        from pg_index i join pg_class c on c.oid = i.indexrelid
        where i.indrelid = any (relation_ids) and (i.indexprs is not null or i.indpred is not null)
        union all
        select t.tgrelid, format('trigger %I', t.tgname), t.tgqual::text from pg_trigger t
        where t.tgrelid = any (relation_ids) and t.tgqual is not null and t.tgenabled <> 'D'
        union all
        select y.polrelid, format('policy %I', y.polname), concat(y.polqual::text, y.polwithcheck::text) from pg_policy y
        where y.polrelid = any (relation_ids)
        union all
        select x.stxrelid, format('statistics %I', x.stxname), x.stxexprs::text from pg_statistic_ext x
        where x.stxrelid = any (relation_ids) and x.stxexprs is not null
    ) t(id, what, tree)
    where t.tree ~ '[( ][1-9][0-9]{4}';
end
$$;

-- attached_objects: the user-defined objects that tables reference outside of expressions.
create or replace function pgtrickle_internal.attached_objects(relation_ids oid[])
returns table (relation_id oid, what text, classid oid, objid oid)
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    return query
        select a.attrelid, format('column %I', a.attname), 'pg_type'::regclass::oid, a.atttypid from pg_attribute a
        where a.attrelid = any (relation_ids) and a.attnum > 0 and not a.attisdropped and a.atttypid >= 16384
        union all
        -- no other role can create a function in the schemas of pgtrickle
        select t.tgrelid, format('trigger %I', t.tgname), 'pg_proc'::regclass, t.tgfoid
        from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = any (relation_ids) and t.tgenabled <> 'D' and t.tgfoid >= 16384
            and p.pronamespace not in ('pgtrickle'::regnamespace, 'pgtrickle_internal'::regnamespace, 'pgtrickle_changes'::regnamespace)
        union all
        select i.indrelid, format('index %I', c.relname), 'pg_opclass'::regclass, o.id
        from pg_index i join pg_class c on c.oid = i.indexrelid cross join lateral unnest(i.indclass) o(id)
        where i.indrelid = any (relation_ids) and o.id >= 16384
        union all
        select k.conrelid, format('constraint %I', k.conname), 'pg_operator'::regclass, o.id
        from pg_constraint k
        cross join lateral unnest(k.conexclop || k.conpfeqop || k.conppeqop || k.conffeqop) o(id)
        where k.conrelid = any (relation_ids) and o.id >= 16384;
end
$$;

-- untrusted_code: what is attached to stream tables and would run untrusted code when the sidecar writes. Rules
-- and inheritance are always refused, and so are foreign keys to tables of untrusted owners: they let a write
-- reach other tables.
create or replace function pgtrickle_internal.untrusted_code(relation_ids oid[])
returns table (relation_id oid, code text)
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    return query
        select distinct a.relation_id, format('%s calls %s', a.what, f.id::regprocedure)
        from (
            select t.relation_id, t.what, o.classid, o.objid from pgtrickle_internal.attached_trees(relation_ids) t
            cross join lateral pgtrickle_internal.tree_objects(t.tree) o
            union
            select o.relation_id, o.what, o.classid, o.objid from pgtrickle_internal.attached_objects(relation_ids) o
        ) a
        cross join lateral pgtrickle_internal.untrusted_functions(array[a.classid], array[a.objid]) f(id);
    return query
        select w.ev_class, format('rule %I rewrites what is written', w.rulename) from pg_rewrite w
        where w.ev_class = any (relation_ids) and w.ev_enabled <> 'D'
        union all
        select i.inhparent, format('table %s inherits from it', pgtrickle_internal.printed(i.inhrelid)) from pg_inherits i
        where i.inhparent = any (relation_ids)
        union all
        select i.inhrelid, format('it inherits from table %s', pgtrickle_internal.printed(i.inhparent)) from pg_inherits i
        where i.inhrelid = any (relation_ids)
        union all
        -- PostgreSQL checks and cascades as the owner of the other table, but in our session. It does so by triggers
        -- on both tables, which are found by an index; constraints are not found by the table that they refer to.
        select distinct t.tgrelid, format('foreign key %I connects it with %s', k.conname, pgtrickle_internal.printed(c.oid))
        from pg_trigger t join pg_class c on c.oid = t.tgconstrrelid
        -- the limit keeps the planner from reading all constraints
        cross join lateral (select f.conname from pg_constraint f where f.oid = t.tgconstraint and f.contype = 'f' limit 1) k
        where t.tgrelid = any (relation_ids) and c.oid <> t.tgrelid and not pgtrickle_internal.is_trusted(c.relowner);
end
$$;

-- constant_parts: the parts of an expression that contain no column. PostgreSQL evaluates them while it plans a
-- query on the table, with the privileges of the reader. Innermost nodes come first: one without a column is kept
-- between < and >, one with a column becomes a mark (@), and the constants inside it are parts.
create or replace function pgtrickle_internal.constant_parts(tree text) returns setof text
language plpgsql immutable rows 1 set search_path = pg_catalog, pg_temp
as $$
declare
    -- a brace after a backslash is part of a name
    rest text := regexp_replace(translate(tree, '<>@', '___'), E'\\\\.', '_', 'g');
    before text;
begin
    rest := regexp_replace(rest, '[{]VAR [^{}]*[}]', '@', 'g');
    loop
        before := rest;
        rest := regexp_replace(rest, '[{]([^{}@]*)[}]', E'<\\1>', 'g');
        while rest ~ '<[^<>]*<' loop
            rest := regexp_replace(rest, '<([^<>]*)<([^<>]*)>', E'<\\1 \\2', 'g');
        end loop;
        return query select constant[1]
            from regexp_matches(rest, '[{][^{}]*@[^{}]*[}]', 'g') node,
                regexp_matches(node[1], '<([^<>]*)>', 'g') constant;
        rest := regexp_replace(rest, '[{][^{}]*@[^{}]*[}]', '@', 'g');
        exit when rest = before;
    end loop;
    return next rest;
end
$$;

-- folded_functions: the functions of an expression that PostgreSQL runs while it plans, with the privileges of the
-- reader: those over constants, SQL functions that it may inline, and any with defaults, which are filled in then.
create or replace function pgtrickle_internal.folded_functions(tree text) returns setof oid
language sql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
    with named(classid, objid) as materialized (select * from pgtrickle_internal.tree_objects(tree)),
    called(id) as (
        select n.objid from named n where n.classid = 'pg_proc'::regclass
        union
        select o.oprcode::oid from named n join pg_operator o on o.oid = n.objid
        where n.classid = 'pg_operator'::regclass
    )
    select p.oid from called join pg_proc p on p.oid = called.id
    where p.oid >= 16384 and not pgtrickle_internal.is_trusted(p.proowner) and (p.pronargdefaults > 0
        or (p.prolang = (select l.oid from pg_language l where l.lanname = 'sql')
            and not p.prosecdef and p.proconfig is null))
    union
    select f.id from pgtrickle_internal.constant_parts(tree) part(tree)
    cross join lateral pgtrickle_internal.tree_objects(part.tree) o
    cross join lateral pgtrickle_internal.untrusted_functions(array[o.classid], array[o.objid]) f(id)
    where exists (select from named)
$$;

-- untrusted_reading: what is attached to sources and runs untrusted code when they are read. Every refresh calls
-- this before it reads, so expressions without a user-defined object are skipped at once.
create or replace function pgtrickle_internal.untrusted_reading(sources oid[]) returns setof text
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    related oid[] := sources;
begin
    if exists (select from pg_inherits i where i.inhparent = any (sources))
        or exists (select from pg_inherits i where i.inhrelid = any (sources))
    then
        related := array(
            with recursive above(id) as (
                select unnest(sources)
                union
                select i.inhparent from above join pg_inherits i on i.inhrelid = above.id
            )
            select above.id from above
            union
            select t.id from unnest(sources) s(id) cross join lateral pgtrickle_internal.tree_of(s.id) t(id));
    end if;
    return query
        select distinct format('%s of %s calls %s', t.what, pgtrickle_internal.printed(t.id), f.id::regprocedure)
        from (
            select i.indrelid as id, format('index %I', c.relname) as what,
                concat(i.indexprs::text, i.indpred::text) as tree
            from pg_index i join pg_class c on c.oid = i.indexrelid
            where i.indrelid = any (related) and (i.indexprs is not null or i.indpred is not null)
            union all
            select k.conrelid, format('constraint %I', k.conname), k.conbin::text from pg_constraint k
            where k.conrelid = any (related) and k.conbin is not null
            union all
            select x.stxrelid, format('statistics %I', x.stxname), x.stxexprs::text from pg_statistic_ext x
            where x.stxrelid = any (related) and x.stxexprs is not null
            union all
            select p.partrelid, 'partition key', p.partexprs::text from pg_partitioned_table p
            where p.partrelid = any (related) and p.partexprs is not null
        ) t
        cross join lateral pgtrickle_internal.folded_functions(t.tree) f(id)
        where t.tree ~ '[( ][1-9][0-9]{4}';
end
$$;

-- untrusted_of: the untrusted code that a role would run if it parsed the text of a view or read a table, except code of
-- its own; null if there is none. Every role may ask: it only reads the catalogs of PostgreSQL.
create or replace function pgtrickle_internal.untrusted_of(relation_id oid, reader oid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select string_agg(distinct f.code, '; ') from pg_class c cross join lateral (
        select u.id::regprocedure::text from pgtrickle_internal.untrusted_functions(array['pg_class'::regclass::oid], array[c.oid]) u(id)
        join pg_proc p on p.oid = u.id where c.relkind = 'v' and p.proowner <> reader
        union all
        select u.code from pgtrickle_internal.untrusted_reading(array[c.oid]) u(code)
        where c.relkind in ('r', 'p') and c.relowner <> reader
    ) f(code) where c.oid = relation_id
$$;

-- refuse_deferred_code: raise if the current transaction has written to a table whose constraint triggers may still
-- wait for the commit. PostgreSQL shows no queue of them, but a writer holds a lock until then, and a table with
-- waiting triggers cannot lose them. Built-in triggers run as the owner of their table, or no code of others, except that
-- of an exclusion constraint: it evaluates expressions. Before version 18, PostgreSQL runs all this as the role that
-- commits.
create or replace function pgtrickle_internal.refuse_deferred_code() returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    waiting text := (
        select string_agg(distinct format('%I on %s', t.tgname, pgtrickle_internal.printed(t.tgrelid)), ', ')
        from pg_locks l join pg_trigger t on t.tgrelid = l.relation and t.tgdeferrable
        left join pg_constraint k on k.oid = t.tgconstraint
        where l.pid = pg_backend_pid() and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
            and (t.tgfoid >= 16384 or k.contype = 'x'));
begin
    if waiting is not null then
        raise exception '%', format('the statement has written to a table with deferrable triggers: %s', waiting) using
            errcode = 'TA003',
            hint = 'They could run at the commit, with the rights of the role that is logged in. Let the owner run the '
                'statement.';
    end if;
end
$$;

-- untrusted_reads: the untrusted code that a refresh of stream tables would run before it writes, and the foreign
-- credentials that it would use. Owners, memberships, domain constraints, casts and functions of the same name
-- change without notice, so everything that the queries reach is checked again. A query that only uses built-in
-- objects costs nothing here, and a source that several of them read is checked once.
create or replace function pgtrickle_internal.untrusted_reads(ids bigint[]) returns table (pgt_id bigint, code text)
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    return query
        select s.pgt_id, format('the query calls %s', f.id::regprocedure)
        from pgtrickle.pgt_stream_tables s
        cross join lateral pgtrickle_internal.untrusted_functions(s.reached_classes, s.reached_objects) f(id)
        where s.pgt_id = any (ids) and s.reached_objects <> '{}';
    -- a partition or a child may be foreign, too
    if exists (select from pg_foreign_table) then
        return query
            select distinct d.pgt_id, b.why from pgtrickle.pgt_dependencies d
            cross join lateral pgtrickle_internal.tree_of(d.source_relid) t(id)
            cross join lateral pgtrickle_internal.borrowed_credentials(t.id) b(why)
            where d.pgt_id = any (ids) and d.source_type not in ('view', 'function') and b.why is not null;
    end if;
    if exists (select from pgtrickle_internal.untrusted_reading(array(
            select distinct d.source_relid from pgtrickle.pgt_dependencies d
            where d.pgt_id = any (ids) and d.source_type not in ('view', 'function'))))
    then
        return query
            select distinct d.pgt_id, u.code from pgtrickle.pgt_dependencies d
            cross join lateral pgtrickle_internal.untrusted_reading(array[d.source_relid]) u(code)
            where d.pgt_id = any (ids) and d.source_type not in ('view', 'function');
    end if;
end
$$;

-- borrowed_credentials: why a foreign table of an untrusted owner would be read with credentials that the owner
-- does not have; null if it would not. It is read with the user mapping of the sidecar's role. If that is a
-- mapping of its own, or uses the keys of its login, the owner of the table would choose what is read with them.
create or replace function pgtrickle_internal.borrowed_credentials(relation_id oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select case
        when exists (select from pg_user_mappings m
            where m.srvid = s.oid and m.umuser = pgtrickle.sidecar_role())
            then format('server %I has a user mapping for %I', s.srvname, pg_get_userbyid(pgtrickle.sidecar_role()))
        when concat(s.srvoptions::text, w.fdwoptions::text) ~* '(scram_passthrough|gssdelegation)'
            or exists (select from pg_user_mappings m where m.srvid = s.oid and m.umuser = 0
                and (m.umoptions::text ~* '(scram_passthrough|gssdelegation)'
                    or (m.umoptions is null and not pgtrickle_internal.is_trusted(s.srvowner)
                        and current_setting('server_version_num')::integer >= 160000)))
            then format('server %I may pass on the credentials of %I', s.srvname,
                pg_get_userbyid(pgtrickle.sidecar_role()))
        end
    from pg_class c
    join pg_foreign_table f on f.ftrelid = c.oid
    join pg_foreign_server s on s.oid = f.ftserver
    join pg_foreign_data_wrapper w on w.oid = s.srvfdw
    where c.oid = relation_id and not pgtrickle_internal.is_trusted(c.relowner)
$$;
