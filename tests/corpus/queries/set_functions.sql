-- unnest in the list
select id, unnest(tags) as tag from people;

-- generate_series in the list
select id, generate_series(1, team) as n from people;

-- two sets in the list
select id, unnest(tags) as tag, generate_series(1, 2) as n from people;

-- same set twice in the list
select id, unnest(tags) as a, unnest(tags) as b from people;

-- set in an expression
select id, 'x' || unnest(tags) as t, generate_series(1, 2) * id as n from teams join (select id as pid, tags
from people) p on p.pid = id;

-- set of a set
select id, generate_series(1, generate_series(1, 2)) as n from teams;

-- jsonb_object_keys in the list
select id, jsonb_object_keys(info) as k from people;

-- jsonb_each in the list
select id, (jsonb_each(info)).* from people;

-- composite set in the list
select id, corners(id % 3) as c from teams;

-- fields of a composite set
select id, (corners(id % 3)).y as y from teams;

-- user set function in the list
select id, letters(title) as l from teams;

-- set with a group
select unnest(tags) as tag, count(*) from people group by 1;

-- set over groups
select team, generate_series(1, count(*)::int) as n from people group by team;

-- set over groups unnested
select team, unnest(array_agg(id order by id)) as id from people group by team;

-- distinct of a set
select distinct unnest(tags) as tag from people;

-- set with order
select id, unnest(tags) as tag from people order by id, tag limit 6;

-- set with limit
select id, unnest(tags) as tag from people order by id limit 4;

-- set in a subquery
select tag, count(*) from (select unnest(tags) as tag from people) q group by tag;

-- set in a with query
with q as (select id, unnest(tags) as tag from people) select tag, min(id) from q group by tag;

-- regexp_matches in the list
select id, regexp_matches(name, '[a-z]', 'g') as m from people;

-- string_to_table in the list
select id, string_to_table(title, 'e') as w from teams;

-- set in exists
select id from people where exists (select unnest(tags));

-- set in in
select id from people where 't1' in (select unnest(tags));

-- set in array
select id, array(select unnest(tags) order by 1) as a from people;

-- set over union
select unnest(tags) as t from people union select title from teams;

-- set with a window
select tag, row_number() over (order by tag, id) as n from (select id, unnest(tags) as tag from people) q;

-- lateral set
select p.id, x.tag from people p cross join lateral (select unnest(p.tags) as tag) x where x.tag like 'u%';

-- two lateral sets
select p.id, a.tag, b.n from people p, unnest(p.tags) a(tag), generate_series(1, 2) b(n);

-- series of timestamps
select t.id, s from teams t, generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day')
s;

-- series of numerics
select t.id, s from teams t, generate_series(0.5, 1.5, 0.5) s;

-- generate_subscripts
select id, generate_subscripts(tags, 1) as i from people;

-- subscripts joined
select p.id, p.tags[i] as tag from people p, generate_subscripts(p.tags, 1) i;

-- series with no rows
select t.id, s from teams t, generate_series(5, 1) s;

-- left join of a series
select t.id, s from teams t left join generate_series(1, 3) s on s = t.id;

-- unnest of a constant
select t.id, u from teams t, unnest(array[1, 2]) u where u = t.id;

-- unnest of a subquery's array
select u from unnest((select array_agg(id order by id) from teams)) u;

-- set in case
select id, case when id > 2 then 1 end as a, unnest(array[id, 2]) as b from teams;
