-- union
select team from people union select id from teams;

-- union all
select team from people union all select id from teams;

-- intersect
select team from people intersect select id from teams;

-- intersect all
select team from people intersect all select score from marks;

-- except
select id from teams except select team from people;

-- except all
select team from people except all select id from teams;

-- three unions
select id from teams union select team from people union select score from marks;

-- mixed set operations
select id from teams union all (select team from people except select score from marks);

-- union with order and limit
select id, 'team' as what from teams union all select id, 'person' from people order by id, what limit 7;

-- union of different types
select id, budget from teams union select id, pay from people;

-- union of texts
select name from people union select title from teams;

-- union with nulls
select null::int as a, 'x' as b union all select id, title from teams;

-- union of groups
select team, count(*) as n from people group by team union all select null, count(*) from people;

-- union in a subquery
select x, count(*) from (select team as x from people union all select id from teams) q group by x;

-- union joined
select t.title, q.x from teams t join (select team as x from people union select 3) q on q.x = t.id;

-- union of limits
(select id from people order by id limit 3) union all (select id from teams order by id desc limit 2);

-- union of values
select n from (values (1), (2)) v(n) union select id from teams;

-- except in a subquery
select count(*) from (select id from people except select id from teams) q;

-- union of whole queries with with
with q as (select id from teams) select id from q union all select id + 100 from q;

-- intersect precedence
select id from teams union select team from people intersect select score from marks;

-- union of arrays
select tags from people union select array['t1', 'u1'];

-- union of jsonb
select info -> 'c' from people union all select '1'::jsonb;

-- union of ranges
select span from things union select int4range(1, 2);

-- union with constants
select 1 as a union all select 1 union all select id from teams;

-- union of records
select row(id, title)::text as r from teams union select row(id, name)::text from people;

-- distinct
select distinct team from people;

-- distinct of several
select distinct team, active from people;

-- distinct on
select distinct on (team) team, id, name from people order by team, pay desc nulls last, id;

-- distinct on expression
select distinct on (id % 3) id % 3 as k, id from people order by id % 3, id desc;

-- distinct with order and limit
select distinct team from people order by team desc nulls last limit 3;

-- distinct of expressions
select distinct upper(left(name, 1)) as c, team is null as n from people;

-- distinct over a join
select distinct t.title from people p join teams t on t.id = p.team;

-- distinct in a subquery
select count(*) from (select distinct code from people) q;

-- order by and limit
select id, pay from people order by pay desc nulls last, id limit 5;

-- offset
select id from people order by id offset 20;

-- limit and offset
select id from people order by name, id limit 4 offset 3;

-- limit all
select id from people order by id limit all;

-- fetch first
select id from people order by id fetch first 3 rows only;

-- fetch with ties
select id, team from people order by team nulls last fetch first 4 rows with ties;

-- limit zero
select id from people limit 0;

-- limit by arithmetic
select id from people order by id limit 1 + 2;

-- order by several
select id from people order by team desc nulls first, pay nulls first, id limit 6;

-- order by expression
select id from people order by -id limit 3;

-- order by output name
select id, pay * 2 as p from people order by p desc nulls last, id limit 3;

-- order by using
select id from people order by id using > limit 3;

-- order by position
select id, name from people order by 2, 1 limit 4;

-- order without limit
select id from people order by name;

-- limit in a subquery
select sum(id) from (select id from people order by id limit 5) q;

-- limit in a join
select p.id, t.title from (select id, team from people order by id limit 6) p join teams t on t.id = p.team;

-- limit of groups
select team, count(*) as n from people group by team order by n desc, team limit 2;

-- limit of a union in from
select x from (select id as x from people union all select id from teams order by x limit 4) q;

-- ordered subquery with limit above
select id from (select id, pay from people order by pay desc nulls last, id limit 8) q order by id limit 3;

-- limit of distinct
select distinct code from people order by code limit 2;
