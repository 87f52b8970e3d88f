-- values: how a value is written where the settings of a session must not matter.

-- value_text: a value as the output function of its type writes it, with every digit. No cast is involved:
-- one from a user's type to text may be the user's own. Declared immutable, so that an index can hold it:
-- what a type's output depends on beside its value is set here.
create or replace function pgtrickle_internal.value_text(value anyelement) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp
    set datestyle = 'ISO' set intervalstyle = 'postgres' set bytea_output = 'hex' set extra_float_digits = 1
as $$ select format('%s', value) $$;

-- base_type: what lies below a domain, however many there are; any other type itself.
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

-- same_in_utf8: the text itself; raises 22P05 where it would come back from UTF-8 as another one.
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
