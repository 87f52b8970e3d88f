-- in
select id from people where team in (select id from teams where budget > 300);

-- not in
select id from people where team not in (select parent from teams where parent is not null);

-- not in with nulls
select id from teams where id not in (select team from people);

-- exists
select t.id from teams t where exists (select from people p where p.team = t.id and p.pay > 30);

-- not exists
select t.id from teams t where not exists (select 1 from people p where p.team = t.id);

-- scalar
select id, (select max(budget) from teams) as top from people;

-- scalar correlated
select t.id, (select count(*) from people p where p.team = t.id) as n from teams t;

-- scalar correlated without group
select p.id, (select t.title from teams t where t.id = p.team) as title from people p;

-- scalar with limit
select t.id, (select p.name from people p where p.team = t.id order by p.id limit 1) as first from teams t;

-- scalar in where
select id from people where pay > (select avg(pay) from people);

-- scalar correlated in where
select p.id from people p where p.pay = (select max(q.pay) from people q where q.team = p.team);

-- scalar in having
select team from people group by team having count(*) = (select max(n) from (select count(*) as n from people
group by team) q);

-- scalar in group by
select (select title from teams t where t.id = p.team) as title, count(*) from people p group by 1;

-- scalar in order by
select id from people p order by (select budget from teams t where t.id = p.team) desc nulls last, id limit 5;

-- scalar in case
select id, case when team > 2 then (select count(*) from teams) else 0 end as n from people;

-- scalar in case by key
select p.id, case when p.active then (select t.title from teams t where t.id = p.team) end as title from
people p;

-- scalar in coalesce
select p.id, coalesce((select t.title from teams t where t.id = p.team), 'none') as title from people p;

-- scalar in an aggregate
select sum((select count(*) from people p where p.team = t.id)) as n from teams t;

-- scalar in a function
select id, upper((select title from teams t where t.id = p.team)) as title from people p;

-- scalar in arithmetic
select id, budget / (select sum(budget) from teams) as share from teams;

-- scalar in an array
select id, array[(select min(id) from teams), id] as a from people;

-- scalar in a row
select id, row(id, (select max(id) from teams))::text as r from people;

-- scalar in a subscript
select id, tags[(select 1)] as a from people;

-- scalar in between
select id from people where pay between (select min(pay) from people) and (select avg(pay) from people);

-- scalar in in list
select id from people where team in (1, (select max(id) from teams));

-- scalar in a window
select id, sum(pay + (select min(id) from teams)) over (order by id) as s from people;

-- scalar in values
select v.n from (values ((select count(*) from people)), (1)) v(n);

-- scalar in a function of from
select g from generate_series(1, (select count(*)::int from teams)) g;

-- scalar in limit
select id from people order by id limit (select 3);

-- scalar in a filter of a window
select id, count(*) filter (where pay > (select avg(pay) from people)) over (partition by team) as n from
people;

-- scalar in a join condition
select p.id, t.id as t from people p join teams t on t.id = p.team and t.budget > (select avg(budget) from
teams);

-- scalar in a left join condition
select p.id, t.id as t from people p left join teams t on t.id = p.team and t.budget > (select avg(budget)
from teams);

-- exists in the select list
select t.id, exists (select from people p where p.team = t.id) as has from teams t;

-- in in the select list
select id, team in (select id from teams) as known from people;

-- not in in case
select id, case when team not in (select id from teams) then 'x' else 'y' end as k from people;

-- in under or
select id from people where team in (select id from teams where budget > 500) or pay > 50;

-- exists under or
select t.id from teams t where t.budget > 500 or exists (select from people p where p.team = t.id and
p.active);

-- not under and
select p.id from people p where not (p.active and p.team in (select id from teams where parent is null));

-- any subquery
select id from people where pay > any (select budget / 10 from teams);

-- all subquery
select id from people where pay < all (select budget / 2 from teams where budget is not null);

-- equals any
select id from people where team = any (select id from teams);

-- not equals all
select id from people where team <> all (select id from teams where budget > 300);

-- like any subquery
select id from people where name like any (select left(title, 1) || '%' from teams);

-- row in
select id from people where (team, active) in (select id, true from teams);

-- row not in
select id from people where (team, id) not in (select id, parent from teams where parent is not null);

-- row comparison with a subquery
select id from teams where (id, budget) = (select id, budget from teams order by budget desc limit 1);

-- correlated in
select p.id from people p where p.id in (select m.person from marks m where m.score > p.team);

-- correlated two levels
select t.id from teams t where exists (select from people p where p.team = t.id and exists (select from events
e where e.person = p.id and e.amount > t.id));

-- correlated by inequality
select t.id, (select count(*) from teams u where u.budget > t.budget) as above from teams t;

-- correlated sum with filter
select t.id, (select sum(p.pay) filter (where p.active) from people p where p.team = t.id) as s from teams t;

-- correlated distinct
select t.id, (select count(distinct p.code) from people p where p.team = t.id) as n from teams t;

-- correlated string_agg
select t.id, (select string_agg(p.name, ',' order by p.id) from people p where p.team = t.id) as names from
teams t;

-- correlated array
select t.id, array(select p.id from people p where p.team = t.id order by p.id) as ids from teams t;

-- correlated union
select t.id, (select max(x) from (select p.id as x from people p where p.team = t.id union all select
t.parent) q) as m from teams t;

-- correlated with limit and offset
select t.id, (select p.id from people p where p.team = t.id order by p.id offset 1 limit 1) as second from
teams t;

-- correlated join
select t.id, (select count(*) from people p join events e on e.person = p.id where p.team = t.id) as n from
teams t;

-- correlated in from
select t.id, l.s from teams t left join lateral (select sum(pay) as s from people p where p.team = t.id having
count(*) > 1) l on true;

-- correlated window
select t.id, (select max(n) from (select row_number() over (order by p.id) as n from people p where p.team =
t.id) q) as n from teams t;

-- subquery of a view
select id from teams where id in (select team from team_pay where total > 50);

-- nested scalar
select id, (select max(id) from teams where id < (select avg(team) from people)) as x from people;

-- exists of groups
select t.id from teams t where exists (select p.team from people p where p.team = t.id group by p.team having
count(*) > 2);

-- in of a union
select id from people where team in (select id from teams where budget > 300 union select 1);

-- in of an intersect
select id from people where team in (select id from teams intersect select team from people where active);

-- exists with limit
select t.id from teams t where exists (select from people p where p.team = t.id limit 1);

-- in with limit
select id from people where team in (select id from teams order by budget desc nulls last, id limit 2);

-- in of groups
select id from teams where id in (select team from people group by team having sum(pay) > 60);

-- array of uncorrelated
select id, array(select id from teams order by id) as a from people where team = 1;

-- is null of scalar
select p.id from people p where (select t.title from teams t where t.id = p.team) is null;

-- boolean scalar
select p.id from people p where (select bool_and(q.active) from people q where q.team = p.team);

-- scalar beside in
select id, (select min(budget) from teams) as m from people where team in (select id from teams);

-- same scalar twice
select (select count(*) from teams) as a, (select count(*) from teams) + 1 as b from people;

-- subquery over a function
select p.id from people p where exists (select from unnest(p.tags) t where t like 't%');

-- scalar over unnest
select p.id, (select count(*) from unnest(p.tags) t where t like 'u%') as n from people p;

-- scalar over jsonb elements
select p.id, (select sum(e::int) from jsonb_array_elements_text(p.info -> 'b') e where e is not null) as s
from people p;

-- array transformed
select p.id, array(select upper(t) from unnest(p.tags) with ordinality u(t, n) order by n) as a from people p;

-- string of elements
select p.id, (select string_agg(t, '+' order by t) from unnest(p.tags) t) as s from people p;

-- aggregate of the outer query
select team, (select max(t.budget) from teams t where t.id = p.team) as b, count(*) from people p group by
team;

-- outer aggregate in a subquery
select team, (select t.title from teams t where t.id = max(p.id)) as title from people p group by team;
