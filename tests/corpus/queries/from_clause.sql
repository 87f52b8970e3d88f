-- rows from two functions
select r.a, r.b from rows from (generate_series(1, 3), generate_series(5, 6)) as r(a, b);

-- rows from over a table
select p.id, r.a, r.b from people p, rows from (unnest(p.tags), generate_series(1, 2)) as r(a, b);

-- rows from with ordinality
select p.id, r.* from people p, rows from (unnest(p.tags), generate_series(1, 3)) with ordinality as r(a, b,
n);

-- rows from a record definition
select p.id, r.* from people p, rows from (jsonb_to_record(p.info) as (a int), generate_series(1, 2)) as r(a,
n);

-- rows from one function
select r from rows from (generate_series(1, 4)) as r;

-- rows from left joined
select p.id, r.a from people p left join lateral rows from (unnest(p.tags), generate_series(1, 1)) as r(a, b)
on r.b = 1;

-- unnest of two arrays
select p.id, u.* from people p, unnest(p.tags, array[p.id, p.team]) as u(tag, n);

-- unnest with ordinality
select p.id, u.tag, u.n from people p, unnest(p.tags) with ordinality as u(tag, n);

-- generate_series with ordinality
select g.v, g.n from generate_series(10, 30, 10) with ordinality as g(v, n);

-- function without alias columns
select p.id, n from people p, generate_series(1, p.team) n;

-- function of dates
select t.id, d::date as d from teams t, generate_series(t.opened, t.opened + 2, interval '1 day') d;

-- regexp_split in from
select p.id, w from people p, regexp_split_to_table(p.name, '[0-9]') w;

-- string_to_table in from
select t.id, w from teams t, string_to_table(t.title, 'e') w;

-- user function in from
select t.id, l from teams t, letters(t.title) l;

-- function of two tables
select p.id, t.id as t, g from people p join teams t on t.id = p.team, generate_series(1, least(p.id, t.id)) g;

-- only a table without children
select id from only teams;

-- only a parent
select id, name from only animals;

-- only a partitioned table
select id from only sales;

-- parent with children
select id, name, legs from animals;

-- child alone
select id, breed from dogs;

-- parent joined with its child
select a.id, d.breed from animals a left join dogs d on d.id = a.id;

-- partitioned table
select region, sum(amount) as total from sales group by region;

-- one partition
select id, amount from sales_north;

-- cross join
select a.id, b.id as other from teams a cross join teams b;

-- comma join
select a.id, b.title from people a, teams b where b.id = a.team;

-- inner join using
select id, p.name, t.title from people p join teams t using (id);

-- left join using
select id, p.name, t.title from people p left join teams t using (id);

-- full join using
select id, p.name, t.title from people p full join teams t using (id);

-- join using alias
select j.id, p.name from people p join teams t using (id) as j;

-- natural join
select * from (select id, name from people) a natural join (select id, title from teams) b;

-- natural full join
select * from (select id, name from people) a natural full join (select id, title from teams) b;

-- left join on
select p.id, t.title from people p left join teams t on t.id = p.team and t.budget > 200;

-- right join on
select p.id, t.title from people p right join teams t on t.id = p.team;

-- full join on
select p.id, t.id as t from people p full join teams t on t.id = p.team and p.active;

-- join by inequality
select a.id, b.id as other from teams a join teams b on a.id < b.id and a.title = b.title;

-- join of three
select e.id, p.name, t.title from events e join people p on p.id = e.person join teams t on t.id = p.team;

-- joins in parentheses
select p.id, j.title from people p left join (teams t join marks m on m.person = t.id) j on j.parent = p.team;

-- left joins in a row
select p.id, t.title, u.title as above from people p left join teams t on t.id = p.team left join teams u on
u.id = t.parent;

-- join on true
select a.id, m.person from teams a join marks m on true where a.id = m.score;

-- join on false
select p.id, t.id as t from people p left join teams t on false;

-- subquery with alias columns
select q.a, q.b from (select id, title from teams) q(a, b);

-- subquery without columns
select count(*) from (select from teams) q;

-- lateral subquery
select t.id, l.name from teams t, lateral (select name from people p where p.team = t.id) l;

-- lateral limit
select t.id, l.id as p from teams t, lateral (select p.id from people p where p.team = t.id order by p.id desc
limit 2) l;

-- lateral left aggregate
select t.id, l.n, l.top from teams t left join lateral (select count(*) as n, max(pay) as top from people p
where p.team = t.id) l on true;

-- lateral chain
select t.id, a.n, b.m from teams t, lateral (select t.id + 1 as n) a, lateral (select a.n * 2 as m) b;

-- lateral values
select t.id, v.x from teams t, lateral (values (t.id), (t.parent)) v(x);

-- lateral union
select t.id, l.x from teams t, lateral (select t.id as x union all select t.parent) l;

-- lateral with a join
select t.id, l.kind from teams t, lateral (select e.kind from people p join events e on e.person = p.id where
p.team = t.id) l;

-- values in from
select v.a, t.title from (values (1, 'a'), (2, 'b'), (2, 'b')) v(a, b) join teams t on t.id = v.a;

-- values alone
values (1, 'x'), (2, null), (3, 'z');

-- values with order and limit
select * from (values (3), (1), (2)) v(n) order by n limit 2;

-- no from
select 1 + 1 as two, 'x' as x;

-- no columns of a subquery
select 1 as one from (select from teams) q;

-- view
select id, pay from adults;

-- view of groups
select t.title, v.total, v.heads from team_pay v join teams t on t.id = v.team;

-- view joined with itself
select a.id, b.id as other from adults a join adults b on a.team = b.team and a.id < b.id;

-- with
with q as (select team, avg(pay) as mean from people group by team) select p.id from people p join q on q.team
= p.team where p.pay > q.mean;

-- with materialized
with q as materialized (select id, team from people) select count(*) from q where team = 1;

-- with not materialized
with q as not materialized (select id, team from people) select a.id from q a join q b using (team);

-- with columns renamed
with q(a, b) as (select id, title from teams) select b, a from q;

-- with nested
with a as (with b as (select id from teams) select id + 1 as n from b) select n from a;

-- with in a subquery
select p.id from people p where p.team in (with q as (select id from teams where budget > 300) select id from
q);

-- recursive tree
with recursive r(id, top) as (select id, id from teams where parent is null union all select t.id, r.top from
teams t join r on t.parent = r.id) select * from r;

-- recursive union
with recursive r(id) as (select 1 union select t.parent from teams t join r on t.id > r.id) select id from r;

-- recursive with depth
with recursive r as (select id, 0 as depth from teams where parent is null union all select t.id, r.depth + 1
from teams t join r on t.parent = r.id where r.depth < 5) select depth, count(*) from r group by depth;

-- recursive with path
with recursive r as (select id, array[id] as path from teams where parent is null union all select t.id,
r.path || t.id from teams t join r on t.parent = r.id) select * from r;

-- recursive cycle
with recursive r(id, parent) as (select id, parent from teams union all select t.id, t.parent from teams t
join r on t.id = r.parent) cycle id set looped using path select id, looped from r;

-- recursive counter
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n, title from r left join
teams on teams.id = n;

-- sequence of numbers
select t.id, s.n from teams t join generate_series(1, 4) s(n) on s.n = t.id;

-- tables of other names
select "T".id as "Id of T" from teams as "T";

-- columns renamed in from
select q.one, q.title from teams as q(one);

-- table command
select * from teams;

-- select all of a join using
select * from (select id, title from teams) a join (select id, name from people) b using (id);

-- order of columns by a natural join
select * from (select title, id from teams) a natural left join (select id, name from people) b;
