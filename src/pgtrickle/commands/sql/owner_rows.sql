-- owner_rows: a function of the current role that returns rows of a query with the rights of its owner, once.
create function pg_temp.pgtrickle_rows(given text) returns setof text[]
language plpgsql security definer
as $function$
begin
    return query execute given;
end
$function$
