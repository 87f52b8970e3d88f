-- columns of a sequence
select last_value, is_called from ticket;

-- sequence joined
select t.id, s.last_value from teams t, ticket s;
