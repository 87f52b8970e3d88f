-- values: how a value is written independently of the settings of a session.

-- value_text: a value as the output function of its type writes it, with every digit. No cast is involved: a cast
-- from a user-defined type to text may be untrusted. Declared immutable so that an index can use it: the settings
-- that the output depends on are set here.
create or replace function pgtrickle_internal.value_text(value anyelement) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO' set intervalstyle = 'postgres' set bytea_output = 'hex' set extra_float_digits = 1
as $$ select format('%s', value) $$;

-- base_type: the type below a domain, at any depth; any other type is its own base.
create or replace function pgtrickle_internal.base_type(type_id oid) returns oid
language sql stable set search_path = pg_catalog, pg_temp
as $$
    with recursive below(id, depth) as (
        select type_id, 0
        union all
        select t.typbasetype, b.depth + 1 from below b join pg_type t on t.oid = b.id and t.typtype = 'd'
    )
    select b.id from below b order by b.depth desc limit 1
$$;

-- same_in_utf8: the text itself; raises 22P05 if a conversion to UTF-8 and back would change it.
create or replace function pgtrickle_internal.same_in_utf8(value text) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp
as $$
begin
    if convert_from(convert_to(value, 'UTF8'), 'UTF8') collate "C" <> value collate "C" then
        raise exception 'a text has characters that UTF-8 does not tell apart' using errcode = '22P05';
    end if;
    return value;
end
$$;
