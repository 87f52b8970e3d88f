-- owner_analysis: a function of the current role that analyses a query, as `_analyse` does for the login role.
-- It runs once, in a transaction that is rolled back, with the rights of its owner. Within it, nothing can change
-- to the login role: PostgreSQL refuses SET ROLE in a SECURITY DEFINER function.
create function pg_temp.pgtrickle_analysis(given_query text, given_name text)
returns table (
    schema_name text, table_name text, settings jsonb, canonical text, captured bigint[], views bigint[],
    grants text[])
language plpgsql security definer
as $function$
declare
    query_view oid := pgtrickle_internal.view_of(given_query);
    parts text[];
begin
    perform pgtrickle_internal.check_text(query_view);
    parts := pgtrickle_internal.new_name(given_name);
    return query
    select parts[1], parts[2], pgtrickle_internal.session_settings(), pgtrickle_internal.canonical_of(query_view),
        coalesce(pg_catalog.array_agg(distinct c.oid::bigint) filter (where c.relkind <> 'v'), '{}'),
        coalesce(pg_catalog.array_agg(distinct c.oid::bigint) filter (where c.relkind = 'v'), '{}'),
        array(
            select g from pgtrickle_internal.missing_grants(
                query_view, pg_catalog.quote_ident(current_user)::pg_catalog.regrole::oid) g
            union all
            select g from pgtrickle_internal.missing_room(parts[1]) g)
    from pgtrickle_internal.relations_of(query_view, 0) r join pg_catalog.pg_class c on c.oid = r.relation_id;
end
$function$
