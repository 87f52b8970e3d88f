-- condition_codes: the SQLSTATE of each condition name, as PostgreSQL itself knows it.
-- Parameters: names.  Writes: nothing that lasts.
create or replace function pg_temp.sqlstate_of(condition text) returns text language plpgsql as $$
begin
    raise exception using errcode = condition;
exception when query_canceled or others then
    return sqlstate;
end
$$
