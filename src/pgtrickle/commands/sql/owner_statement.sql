-- owner_statement: a function of the current role that runs one statement with the rights of its owner, once.
-- Constraint triggers that the statement has deferred run here too: at the commit they would run as the login role. One
-- of them may defer others again, so whatever could still wait is refused.
create function pg_temp.pgtrickle_statement(given text) returns void
language plpgsql security definer
as $function$
begin
    execute given;
    set constraints all immediate;
    perform pgtrickle_internal.refuse_deferred_code();
end
$function$
