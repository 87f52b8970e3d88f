-- json_object of columns
select id, json_object('name' : name, 'team' : team) as j from people;

-- json_object absent on null
select id, json_object('name' : name, 'team' : team absent on null returning jsonb) as j from people;

-- json_object with unique keys
select id, json_object(name : id with unique keys) as j from people;

-- json_object without pairs
select id, json_object() as j from people;

-- json_object by key and value
select id, json_object('a' value pay, 'b' value born) as j from people;

-- json_object of formatted text
select id, json_object('doc' : info::text format json) as j from people;

-- json_object returning text
select id, json_object('n' : name returning text) as j from people;

-- json_object nested
select id, json_object('p' : json_object('n' : name), 'l' : json_array(id, team)) as j from people;

-- json_array of columns
select id, json_array(id, name, team) as j from people;

-- json_array null on null
select id, json_array(id, team, pay null on null returning jsonb) as j from people;

-- json_array empty
select id, json_array() as j from people;

-- json_array of a subquery
select id, json_array(select score from marks m where m.person = p.id order by score) as j from people p;

-- json_array of an uncorrelated subquery
select json_array(select title from teams order by id) as j;

-- json_objectagg without order
select team, json_objectagg(id : name) as j from people group by team;

-- json_objectagg absent with unique keys
select team, json_objectagg(id : pay absent on null with unique keys returning jsonb) as j from people group
by team;

-- json_arrayagg in order
select team, json_arrayagg(name order by id) as j from people group by team;

-- json_arrayagg absent on null
select team, json_arrayagg(pay order by id absent on null returning jsonb) as j from people group by team;

-- json_arrayagg null on null
select team, json_arrayagg(pay order by id null on null) as j from people group by team;

-- json_arrayagg with filter
select team, json_arrayagg(name order by id) filter (where pay > 20) as j from people group by team;

-- json_arrayagg of all rows
select json_arrayagg(name order by id returning jsonb) as j from people;

-- json_arrayagg as a window
select id, json_arrayagg(score) over (partition by subject order by id, score) as j from (select person as id,
subject, score from marks where subject = 'art') q;

-- json_arrayagg of objects
select team, json_arrayagg(json_object('id' : id, 'pay' : pay) order by id) as j from people group by team;

-- json_scalar
select id, json_scalar(pay) as a, json_scalar(name) as b, json_scalar(born) as c from people;

-- json_serialize
select id, json_serialize(info returning text) as j from people;

-- json_serialize as bytes
select id, json_serialize(info returning bytea) as j from people;

-- json constructor
select id, json(info::text) as j from people;

-- json constructor with unique keys
select id, json(info::text with unique keys) as j from people;

-- is json
select id, name is json as a, info::text is json as b, info::text is not json as c from people;

-- is json object
select id from people where info::text is json object;

-- is json array
select id, (info -> 'b')::text is json array as a, (info -> 'b')::text is json scalar as b from people;

-- is json with unique keys
select id from people where info::text is json with unique keys;

-- is not json scalar
select id from people where (info -> 'a')::text is not json scalar;

-- json_value
select id, json_value(info, '$.a') as a from people;

-- json_value returning int
select id, json_value(info, '$.a' returning int) as a from people;

-- json_value with defaults
select id, json_value(info, '$.c.d' returning text default 'none' on empty default 'bad' on error) as a from
people;

-- json_value with passing
select id, json_value(info, '$.b[*] ? (@ > $least)' passing team as least returning int null on error) as a
from people;

-- json_query
select id, json_query(info, '$.b') as a from people;

-- json_query with wrapper
select id, json_query(info, '$.b[*]' with wrapper) as a from people;

-- json_query with conditional wrapper
select id, json_query(info, '$.b[*]' with conditional wrapper) as a from people;

-- json_query omit quotes
select id, json_query(info, '$.c.d' returning text omit quotes) as a from people;

-- json_query empty on empty
select id, json_query(info, '$.zzz' empty array on empty) as a from people;

-- json_exists
select id from people where json_exists(info, '$.c.d');

-- json_exists with passing
select id, json_exists(info, '$.b[*] ? (@ == $n)' passing id as n) as a from people;

-- json_exists on error
select id, json_exists(info, 'strict $.x.y' true on error) as a from people;

-- json_table
select p.id, jt.n, jt.v from people p, json_table(p.info, '$.b[*]' columns (n for ordinality, v int path '$'))
jt;

-- json_table with several columns
select p.id, jt.* from people p, json_table(p.info, '$' columns (a int path '$.a', d text path '$.c.d' default
'no' on empty, has boolean exists path '$.c')) jt;

-- json_table nested
select p.id, jt.* from people p, json_table(p.info, '$' columns (a int, nested path '$.b[*]' columns (n for
ordinality, b int path '$'))) jt;

-- json_table left joined
select p.id, jt.v from people p left join json_table(p.info, '$.b[*]' columns (v int path '$')) jt on jt.v > 0;

-- json_table aggregated
select p.team, sum(jt.v) as total from people p, json_table(p.info, '$.b[*]' columns (v int path '$')) jt
group by p.team;

-- json_table of a constant
select t.id, jt.v from teams t join json_table('[1, 2, 3]'::jsonb, '$[*]' columns (v int path '$')) jt on jt.v
= t.id;

-- json_table with passing
select p.id, jt.v from people p, json_table(p.info, '$.b[*] ? (@ > $least)' passing p.team as least columns (v
int path '$')) jt;

-- json_table formatted
select p.id, jt.whole from people p, json_table(p.info, '$' columns (whole jsonb path '$.c' with wrapper)) jt;

-- json_object over a join
select p.id, json_object('team' : t.title, 'person' : p.name) as j from people p join teams t on t.id = p.team;

-- json_array over an outer join
select p.id, json_array(t.id, p.id null on null) as j from people p left join teams t on t.id = p.team;

-- json_object in a condition
select id from people where json_object('a' : team returning text) = '{"a" : 1}';

-- json_value as a group key
select json_value(info, '$.a' returning int) as a, count(*) as n from people group by 1;

-- json_value as a join key
select p.id, t.title from people p join teams t on t.id = json_value(p.info, '$.a' returning int);

-- json_value in a window
select id, rank() over (order by json_value(info, '$.a' returning int), id) as r from people;

-- json_objectagg of a join
select t.id, json_objectagg(p.id : p.name returning jsonb) as j from teams t join people p on p.team = t.id
group by t.id;

-- json_arrayagg without order
select team, json_arrayagg(id) as j from people group by team;

-- to_jsonb of a value
select id, to_jsonb(tags) as a, to_json(pay) as b from people;

-- json_build functions
select id, json_build_object('a', team, 'b', tags) as a, jsonb_build_array(id, name, null) as b from people;

-- json operators
select id, info -> 'b' -> 1 as a, info #>> '{c,d}' as b, info ->> 'a' as c from people;

-- jsonb containment
select id from people where info @> '{"a": 1}' or info ? 'zzz' or info ?| array['c', 'q'];

-- jsonb path operators
select id from people where info @? '$.b[*] ? (@ > 1)' or info @@ '$.a == 2';

-- jsonb concatenation and removal
select id, info || '{"z": 1}' as a, info - 'a' as b, info #- '{c,d}' as c from people;

-- jsonb_set and insert
select id, jsonb_set(info, '{a}', to_jsonb(id)) as a, jsonb_insert(info, '{b,0}', '5') as b from people;

-- jsonb subscripting
select id, info['a'] as a, info['b'][1] as b from people;

-- jsonb_path functions
select id, jsonb_path_query_array(info, '$.b[*]') as a, jsonb_path_exists(info, '$.c') as b,
jsonb_path_query_first(info, '$.b[1]') as c from people;

-- jsonb_strip_nulls
select id, jsonb_strip_nulls(info) as a, jsonb_pretty(info) as b, jsonb_typeof(info -> 'c') as c from people;

-- json_agg in order
select team, json_agg(name order by id) as a, jsonb_agg(pay order by id) as b from people group by team;

-- jsonb_object_agg
select team, jsonb_object_agg(id, name) as a from people group by team;

-- jsonb_each in from
select p.id, e.key, e.value from people p, jsonb_each(p.info) e;

-- jsonb_each_text with names
select p.id, e.k, e.v from people p cross join lateral jsonb_each_text(p.info) as e(k, v);

-- jsonb_array_elements with ordinality
select p.id, e.v, e.n from people p, jsonb_array_elements(p.info -> 'b') with ordinality as e(v, n);

-- jsonb_to_record
select p.id, r.a, r.c from people p, jsonb_to_record(p.info) as r(a int, c jsonb);

-- jsonb_to_recordset
select p.id, r.a from people p, jsonb_to_recordset(jsonb_build_array(coalesce(p.info, '{}'))) as r(a int);

-- jsonb_populate_record
select id, (jsonb_populate_record(null::spot, '{"x": 3}'::jsonb || jsonb_build_object('y', id))).y as y from
people;

-- json of an event
select id, note -> 'list' ->> 0 as a, json_array_length(note -> 'list') as b from events;

-- json_object_keys of events
select id, json_object_keys(note) as k from events;

-- row_to_json
select id, row_to_json(row(name, team)) as j from people;
