-- version: which pgtrickle wrote these functions. `{version}` is filled in on installation.
create or replace function pgtrickle.version() returns text
language sql immutable as $$ select {version}::text $$;
