-- arithmetic
select id, pay + 1 as a, pay - 2 as b, pay * 3 as c, pay / 4 as d, id % 5 as e, -id as f, id ^ 2 as g from
people;

-- integer division
select id, id / 3 as a, id % 3 as b, (-id) / 2 as c, div(id, 3) as d, mod(id, 4) as e from people;

-- bits of integers
select id, id & 3 as a, id | 8 as b, id # 5 as c, ~id as d, id << 2 as e, id >> 1 as f from people;

-- roots and absolute values
select id, |/ id::float as a, ||/ id::float as b, @ (-id) as c, abs(id - 5) as d from people;

-- rounding
select id, round(pay, 1) as a, ceil(pay) as b, floor(pay) as c, trunc(pay, 1) as d, sign(pay) as e,
width_bucket(pay, 0, 100, 5) as f from people;

-- logarithms
select id, ln(id) as a, log(id) as b, exp(1.0) as c, power(id, 2) as d, sqrt(id) as e from people where id > 0;

-- floats
select person, weight * 2 as a, weight / 3 as b, part + weight as c, weight::int as d from marks;

-- trigonometry
select person, sin(weight) as a, cos(weight) as b, degrees(weight) as c, pi() as d from marks;

-- gcd and factorial
select id, gcd(id, 12) as a, lcm(id, 4) as b, factorial(id % 5) as c from people;

-- comparison operators
select id, team = 1 as a, team <> 1 as b, team < 2 as c, team >= 2 as d from people;

-- between
select id from people where pay between 10 and 40 and id not between 3 and 5;

-- between symmetric
select id from people where team between symmetric 4 and 2;

-- is distinct from
select id, team is distinct from 1 as a, team is not distinct from null as b from people;

-- is null tests
select id, team is null as a, pay is not null as b from people;

-- boolean tests
select id, active is true as a, active is not false as b, active is unknown as c, active is not unknown as d
from people;

-- and or not
select id from people where (active or team = 1) and not (pay > 30 and team = 2);

-- in list
select id from people where team in (1, 3, null) and name not in ('ann5', 'bob1');

-- any array
select id from people where team = any (array[1, 2]) and team <> all (array[5, 6]);

-- any of a column
select id from people where 't1' = any (tags);

-- like
select id from people where name like 'a%' or name not like '%1' or name ilike 'B_%';

-- like escape
select id from people where name like 'a!%' escape '!' or name like '%n5';

-- similar to
select id from people where name similar to '(ann|bob)[0-9]+';

-- regular expressions
select id from people where name ~ '^[a-c]' and name !~ '9$' and name ~* 'N' and name !~* 'Q';

-- like any
select id from people where name like any (array['a%', 'b%']);

-- case
select id, case when pay > 40 then 'high' when pay > 20 then 'some' else 'low' end as band from people;

-- case of a value
select id, case team when 1 then 'one' when 2 then 'two' end as t from people;

-- nested case
select id, case when team is null then case when active then 1 else 2 end else team end as t from people;

-- coalesce
select id, coalesce(team, id, 0) as a, coalesce(pay, 0) as b from people;

-- nullif
select id, nullif(team, 1) as a, nullif(name, 'ann5') as b from people;

-- greatest and least
select id, greatest(team, id, 3) as a, least(pay, 20.5) as b from people;

-- casts
select id, id::text as a, pay::int as b, team::numeric(5,1) as c, name::varchar(2) as d, born::text as e,
active::int as f from people;

-- cast function syntax
select id, cast(pay as bigint) as a, cast('5' as int) as b, int4(pay) as c from people;

-- text concatenation
select id, name || '-' || id as a, concat(name, team, null) as b, concat_ws(',', name, team, pay) as c from
people;

-- substring forms
select id, substring(name from 2 for 2) as a, substring(name from '[0-9]+') as b, substr(name, 2) as c,
substring(name similar 'a#"%#"1' escape '#') as d from people;

-- position and overlay
select id, position('n' in name) as a, overlay(name placing 'XX' from 2 for 1) as b, strpos(name, 'b') as c
from people;

-- trim forms
select id, trim(both 'a' from name) as a, trim(leading from name) as b, trim(trailing '1' from name) as c,
btrim(name, 'ab') as d from people;

-- case of letters
select id, upper(name) as a, lower(name) as b, initcap(name) as c, length(name) as d, char_length(name) as e,
octet_length(name) as f, bit_length(name) as g from people;

-- padding
select id, lpad(name, 8, '*') as a, rpad(name, 6) as b, left(name, 2) as c, right(name, -1) as d, repeat(name,
2) as e, reverse(name) as f from people;

-- replacing
select id, replace(name, 'a', 'o') as a, translate(name, 'abc', 'xyz') as b, regexp_replace(name, '[aeiou]',
'', 'g') as c, split_part(name, 'n', 1) as d from people;

-- regexp functions
select id, regexp_match(name, '([a-z]+)([0-9]+)') as a, regexp_count(name, 'n') as b, regexp_instr(name,
'[0-9]') as c, regexp_like(name, 'a') as d, regexp_substr(name, '[0-9]+') as e from people;

-- quoting
select id, quote_literal(name) as a, quote_ident(name) as b, quote_nullable(title) as c from (select p.id,
p.name, t.title from people p left join teams t on t.id = p.team) q;

-- format
select id, format('%s is %L (%I)', name, team, 'col') as a, format('%2$s %1$s', id, name) as b from people;

-- ascii and chr
select id, ascii(name) as a, chr(65 + id % 20) as b, to_hex(id) as c, md5(name) as d from people;

-- encodings
select id, encode(name::bytea, 'hex') as a, convert_to(name, 'UTF8') as b, sha256(name::bytea) as c from
people;

-- unicode escapes
select id, U&'\0041' || name as a, E'tab\there' as b, 'it''s' as c, $$dollar$$ as d from people;

-- collations
select id from people where name collate "C" < 'b' order by name collate "C" limit 5;

-- collation in output
select id, name collate "C" as n from people;

-- dates and intervals
select id, born + 1 as a, born - date '1990-01-01' as b, born + interval '1 month' as c, seen - interval '2
hours' as d from people;

-- extract
select id, extract(year from born) as y, extract(dow from born) as d, extract(epoch from at) as e from (select
p.id, p.born, e.at from people p join events e on e.person = p.id) q;

-- date_trunc
select id, date_trunc('month', born) as a, date_part('hour', at) as b, date_trunc('hour', at) as c from
(select e.id, p.born, e.at from people p join events e on e.person = p.id) q;

-- date_bin
select id, date_bin('15 minutes', at, timestamp '2024-01-01') as slot from events;

-- at time zone
select id, seen at time zone 'UTC' as a, at at time zone 'Europe/Berlin' as b from (select e.id, p.seen, e.at
from people p join events e on e.person = p.id) q;

-- make functions
select id, make_date(2024, 1 + id % 12, 1) as a, make_interval(days => id) as b, make_time(id % 24, 5, 6.5) as
c, make_timestamp(2024, 2, 3, 4, 5, 6) as d from people;

-- to_char of dates
select id, to_char(born, 'YYYY-MM-DD Dy') as a, to_char(pay, '999D99') as b, to_date('20240105', 'YYYYMMDD')
as c, to_timestamp(id) as d from people;

-- age of two dates
select id, age(born, date '1980-01-01') as a, justify_days(took * 30) as b from (select p.id, p.born, e.took
from people p join events e on e.person = p.id) q;

-- overlaps
select id from people where (born, interval '1 year') overlaps (date '1999-01-01', date '2001-01-01');

-- isfinite and infinity
select id, isfinite(born) as a, least(born, 'infinity'::date) as b from people;

-- intervals
select id, took * 2 as a, took / 3 as b, extract(epoch from took) as c, took > interval '1 minute' as d from
events;

-- arrays
select id, array[id, team] as a, tags || 'z'::text as b, array_append(tags, 'q') as c, array_length(tags, 1)
as d, cardinality(tags) as e from people;

-- array subscripts
select id, tags[1] as a, tags[1:2] as b, tags[:1] as c, grid[1][2] as d from (select p.id, p.tags, t.grid from
people p join things t on t.id = p.id) q;

-- array operators
select id from people where tags @> array['t1'] or tags && array['u1', 'u0'] or tags <@ array['t2', 'u0'];

-- array functions
select id, array_remove(tags, 'u1') as a, array_replace(tags, 't1', 'x') as b, array_position(tags, 'u0') as
c, array_to_string(tags, ',') as d, string_to_array(name, 'n') as e from people;

-- array of a subquery
select p.id, array(select m.score from marks m where m.person = p.id order by m.score) as a from people p;

-- multidimensional arrays
select id, grid, grid[1:1] as a, array_dims(grid) as b, array_ndims(grid) as c, array_upper(grid, 2) as d from
things;

-- arrays compared
select a.id from people a join people b on a.tags = b.tags and a.id < b.id;

-- arrays in order
select id from people order by tags nulls first, id limit 5;

-- nested array constructor
select id, array[[id, 1], [2, 3]] as a, array[]::int[] as b from people;

-- trim_array and fill
select id, trim_array(tags, 1) as a, array_fill(id, array[2]) as b, array_cat(tags, array['x']) as c from
people where cardinality(tags) > 1;

-- ranges
select id, lower(span) as a, upper(span) as b, isempty(span) as c, span @> 3 as d, span && int4range(2, 4) as
e from things;

-- range operators
select id, span * int4range(1, 4) as a, span << int4range(9, 10) as b, span -|- int4range(5, 6) as c,
lower_inc(span) as d from things;

-- range constructors
select id, int4range(id, id + 2, '[]') as a, numrange(1, 2) as b, daterange('2024-01-01', null) as c from
things;

-- multiranges
select id, spans * int4multirange(int4range(1, 3)) as a, spans @> 2 as b, range_merge(spans) as c,
unnest(spans) as d from things;

-- range_agg
select small, range_agg(span) as a, range_intersect_agg(span) as b from things group by small;

-- date ranges
select id from things where days @> date '2024-01-03' or days && daterange('2024-01-06', '2024-01-09');

-- enums
select id, colour, colour > 'light' as a, enum_first(colour) as b, enum_range(colour) as c from teams;

-- enum order
select id from teams order by colour desc nulls last, id limit 4;

-- enum groups
select colour, count(*), max(colour) as top from teams group by colour;

-- domains
select id, size, size + 1 as a, (id + 1)::positive as b from things;

-- network addresses
select id, host(addr) as a, masklen(addr) as b, network(addr) as c, addr << inet '10.0.0.0/8' as d, addr + 1
as e, set_masklen(addr, 16) as f from things;

-- mac addresses
select id, trunc(mac) as a, mac < macaddr '08:00:2b:01:02:02' as b, mac::macaddr8 as c from things;

-- bit strings
select id, bits & B'1010' as a, bits | B'0001' as b, bits << 1 as c, bits::int as d, flags || B'1' as e,
get_bit(bits, 0) as f, length(flags) as g from things;

-- byte strings
select id, raw || '\x00'::bytea as a, length(raw) as b, get_byte(raw, 0) as c, substring(raw from 1 for 1) as
d, encode(raw, 'base64') as e from things;

-- money
select id, price + '1'::money as a, price * 2 as b, price / 2 as c, price::numeric as d, price > '2'::money as
e from things;

-- uuids
select id, uid, uid::text as a, uid < '00000000-0000-0000-0000-000000000005'::uuid as b from things;

-- points and boxes
select id, place[0] as a, place + point '(1,1)' as b, place <-> point '(0,0)' as c, area @> place as d,
area(area) as e from things;

-- geometric functions
select id, center(area) as a, height(area) as b, circle(place, 2) as c, lseg(place, point '(1,1)') as d from
things;

-- geometric conditions
select id from things where place ~= point '(1,1)' or place <@ area;

-- text search
select id, words @@ to_tsquery('simple', 'word1 | more0') as a, ts_rank(words, to_tsquery('simple', 'word1'))
as b, length(words) as c, strip(words) as d from things;

-- text search functions
select id, to_tsvector('simple', name) as a, plainto_tsquery('simple', name) as b, ts_headline('simple', name,
'ann5') as c, phraseto_tsquery('simple', 'a b') as d from people;

-- tsvector unnested
select t.id, u.lexeme from things t, unnest(t.words) u;

-- user function
select id, doubled(team) as a, doubled(doubled(id)) as b from people;

-- user function by name
select id, doubled(value => team) as a from people;

-- user operator
select id from people where team ==> 2;

-- operator syntax
select id, 1 operator(pg_catalog.+) id as a, team operator(public.==>) 3 as b from people;

-- variadic call
select id, concat(variadic tags) as a, jsonb_build_array(variadic tags) as b, format('%s', variadic
array[name]) as c from people;

-- default arguments
select id, string_to_array(name, 'n', 'a') as a, make_interval(hours => 2, mins => id) as b from people;

-- typed literals
select id, date '2024-02-29' as a, interval '1 day 2 hours' as b, timestamp '2024-01-01 10:00' as c, time
'10:11' as d, B'101' as e, X'1F' as f, 1e3 as g, .5 as h from teams;

-- numeric literals
select id, 12345678901234567890 as a, 1.50 as b, 0x1F as c, 1_000 as d, '-0'::numeric as e from teams;

-- special numbers
select id, 'NaN'::float8 as a, 'Infinity'::float8 as b, 'NaN'::numeric = 'NaN'::numeric as c from teams;

-- boolean literals
select id, true and active as a, not active as b, 'yes'::boolean as c from people;

-- null literals
select id, null as a, null::int as b, null + 1 as c from teams;

-- conditional sum
select id, (case when active then pay else 0 end) * 2 as a from people;

-- pg_typeof
select id, pg_typeof(pay)::oid > 0 as a from people;

-- num_nulls
select id, num_nulls(team, pay, active) as a, num_nonnulls(team, pay) as b from people;

-- interval extraction chain
select id, (extract(epoch from (at - timestamp '2024-03-01')) / 60)::int as minutes from events;

-- char padded
select id, code, code = 'c1' as a, length(code) as b, code || 'x' as c from people;

-- char groups
select code, count(*) from people group by code;

-- hash functions
select id, hashtext(name) as a, hashint4(id) as b from people;

-- bit counts
select id, bit_count(bits) as a, bit_count(raw) as b from things;

-- normalize
select id, normalize(name) as a, name is normalized as b, unistr('\0041') as c from people;

-- chained casts of text
select id, name::text::varchar(3)::char(2) as a from people;

-- timestamps with precision
select id, seen::timestamptz(0) as a, at::timestamp(0) as b, at::date as c, at::time as d from (select e.id,
p.seen, e.at from people p join events e on e.person = p.id) q;

-- time zones
select id, timezone('UTC', seen) as a, seen::timestamptz at time zone interval '2 hours' as b from people;

-- at local
select id, at at local as a from events;

-- string comparisons
select id from people where name > 'b' and name <= 'd9' and starts_with(name, 'c');

-- text operators
select id, name ^@ 'a' as a, name ~~ 'a%' as b, name !~~* 'B%' as c from people;

-- min scale
select id, scale(pay) as a, min_scale(pay) as b, trim_scale(pay) as c from people;

-- trig of numerics
select id, round(sqrt(pay), 3) as a, round(ln(pay + 1), 4) as b from people;

-- scalar of a set in case
select id, case when cardinality(tags) > 0 then tags[cardinality(tags)] end as a from people;

-- group by expression
select upper(left(name, 1)) as a, count(*) from people group by upper(left(name, 1));
