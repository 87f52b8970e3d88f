-- version: the version of pgtrickle that wrote these functions. `{version}` is filled in on installation.
create or replace function pgtrickle.version() returns text
language sql immutable as $$ select {version}::text $$;
comment on function pgtrickle.version() is
    'The version of pgtrickle that is installed. Call it with SELECT. Everyone may call it.';
