-- dependency_tree: which stream table reads what, drawn as a tree.

-- dependency_tree: the stream tables that no other one reads, each with what it reads below it. What is below a
-- stream table is drawn where it comes first; drawing it again for each of its readers could take forever.
create or replace function pgtrickle.dependency_tree() returns table (
    tree_line text, node text, node_type text, depth integer, status text, refresh_mode text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    -- lines are drawn by characters that not every encoding has
    has_lines boolean := getdatabaseencoding() = 'UTF8' and current_setting('client_encoding') = 'UTF8';
    tee text := case when has_lines then convert_from('\xe2949ce29480e2948020', 'UTF8') else '|-- ' end;
    corner text := case when has_lines then convert_from('\xe29494e29480e2948020', 'UTF8') else '`-- ' end;
    bar text := case when has_lines then convert_from('\xe29482202020', 'UTF8') else '|   ' end;
    -- nodes by position: stream tables, then sources
    names text[];
    types text[];
    states text[];
    modes text[];
    are_read boolean[];
    -- what a node reads: the positions from first to last in children
    children integer[];
    firsts integer[];
    lasts integer[];
    are_drawn boolean[];
    -- what is still to be drawn: node, the text before its line, and the branch that leads to it
    waiting integer[] := '{}';
    heads text[] := '{}';
    branches text[] := '{}';
    depths integer[] := '{}';
    top integer := 0;
    present integer;
    head text;
    is_again boolean;
begin
    with tables as (
        select s.pgt_id, s.pgt_relid, format('%I.%I', i.pgt_schema, i.pgt_name) as name, i.status,
            coalesce(i.effective_refresh_mode, i.refresh_mode) as mode
        from pgtrickle.stream_tables_info i join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id
    ), edges as materialized (
        select d.pgt_id, d.source_relid, t.pgt_id as child, d.source_schema, d.source_name, d.source_type
        from pgtrickle.pgt_dependencies d
        left join tables t on t.pgt_relid = d.source_relid and d.source_type = 'stream_table'
        where d.source_type not in ('view', 'function')
    ), nodes as materialized (
        select n.*, row_number() over (order by n.type <> 'stream_table', n.name, n.relation_id)::integer as place
        from (
            select t.pgt_id, t.pgt_relid as relation_id, t.name, 'stream_table' as type, t.status, t.mode,
                exists (select from edges e where e.child = t.pgt_id) as is_read
            from tables t
            union all
            select null, e.source_relid, coalesce(case when not (select pgtrickle.is_copy())
                    then pgtrickle_internal.printed(e.source_relid) end, min(format('%I.%I', e.source_schema, e.source_name))),
                min(case when e.source_type in ('table', 'stream_table') then 'source_table' else e.source_type end),
                null, null, true
            from edges e where e.child is null group by e.source_relid
        ) n
    ), numbered as (
        select p.place as parent, c.place as child, row_number() over (order by p.place, c.place)::integer as place
        from edges e join nodes p on p.pgt_id = e.pgt_id
        join nodes c on c.pgt_id = e.child or (e.child is null and c.pgt_id is null and c.relation_id = e.source_relid)
    ), spans as (
        select n.parent, min(n.place) as first, max(n.place) as last from numbered n group by n.parent
    )
    select array_agg(n.name order by n.place), array_agg(n.type order by n.place), array_agg(n.status order by n.place),
        array_agg(n.mode order by n.place), array_agg(n.is_read order by n.place), array_agg(false),
        array_agg(coalesce(s.first, 1) order by n.place), array_agg(coalesce(s.last, 0) order by n.place),
        (select coalesce(array_agg(e.child order by e.place), '{}') from numbered e)
    into names, types, states, modes, are_read, are_drawn, firsts, lasts, children
    from nodes n left join spans s on s.parent = n.place;
    for root in 1 .. coalesce(cardinality(names), 0) loop
        continue when are_read[root];
        top := 1;
        waiting[1] := root;
        heads[1] := '';
        branches[1] := '';
        depths[1] := 0;
        while top > 0 loop
            present := waiting[top];
            depth := depths[top];
            node := names[present];
            node_type := types[present];
            status := states[present];
            refresh_mode := modes[present];
            is_again := are_drawn[present] and lasts[present] > 0;
            tree_line := heads[top] || branches[top] || node
                || case when node_type <> 'stream_table' then ' [src]' when is_again then ' (see above)' else '' end;
            head := heads[top] || case branches[top] when tee then bar when corner then '    ' else '' end;
            top := top - 1;
            return next;
            continue when is_again;
            are_drawn[present] := true;
            for place in reverse lasts[present] .. firsts[present] loop
                top := top + 1;
                waiting[top] := children[place];
                heads[top] := head;
                branches[top] := case when place = lasts[present] then corner else tee end;
                depths[top] := depth + 1;
            end loop;
        end loop;
    end loop;
end
$$;
comment on function pgtrickle.dependency_tree() is
    E'Which stream table reads what, drawn as a tree: those that no other one reads come first, with what they read '
    'below them. Call it with SELECT ... FROM. Everyone may call it.\n'
    '\ntree_line: The line to show, indented; [src] marks a source. What is below a stream table is drawn once.'
    '\nnode: The stream table or source.'
    '\nnode_type: stream_table, source_table, materialized_view or foreign_table.'
    '\ndepth: How far below the first line it is.'
    '\nstatus: INITIALIZING, ACTIVE, SUSPENDED or ERROR; null for a source.'
    '\nrefresh_mode: How it is refreshed: DIFFERENTIAL or FULL, or AUTO until that is known; null for a source.';
