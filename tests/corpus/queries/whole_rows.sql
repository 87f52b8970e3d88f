-- whole row
select t from teams t;

-- whole row beside a column
select t.id, t from teams t;

-- count of a whole row
select count(t) from teams t;

-- count of whole rows in groups
select t.parent, count(t) from teams t group by t.parent;

-- row of all columns
select row(t.*)::text as r from teams t;

-- whole row as text
select t.id, t.*::text as r from teams t;

-- whole row cast
select t.id, (t.*)::teams as r from teams t;

-- to_jsonb of a whole row
select to_jsonb(t) as j from teams t;

-- row_to_json of a whole row
select row_to_json(t) as j from teams t;

-- to_jsonb of a subquery's row
select to_jsonb(q) as j from (select id, title from teams) q;

-- whole row in a join
select p.id, t from people p join teams t on t.id = p.team;

-- whole row of an outer join
select p.id, t from people p left join teams t on t.id = p.team;

-- whole row is null
select p.id from people p left join teams t on t.id = p.team where t is null;

-- whole row is not null
select p.id, t is not null as has from people p left join teams t on t.id = p.team;

-- whole rows compared
select a.id, b.id as other from teams a join teams b on a = b;

-- whole rows in order
select t.id from teams t order by t limit 3;

-- distinct whole rows
select distinct t from teams t;

-- group by a whole row
select m::text as m, count(*) from (select person, subject from marks) m group by m;

-- array_agg of whole rows
select t.parent, array_agg(t order by t.id) as a from teams t group by t.parent;

-- json_agg of whole rows
select t.parent, json_agg(t order by t.id) as a from teams t group by t.parent;

-- field of a whole row
select (t).title as a, (t).id as b from teams t;

-- whole row in exists
select p.id from people p where exists (select t from teams t where t.id = p.team);

-- whole row in in
select a.id from teams a where a in (select b from teams b where b.budget > 300);

-- whole row of a view
select a from adults a;

-- whole row of a function
select p.id, c from people p, corners(p.team) c;

-- whole row of unnest
select p.id, e from people p, unnest(p.tags) e;

-- whole row of values
select v::text as v from (values (1, 'a'), (2, 'b')) v(n, s);

-- whole row of a with query
with q as (select id, name from people where team = 1) select q::text as q from q;

-- whole row as an argument
select t.id, num_nulls(t.*) as n from teams t;

-- whole row in coalesce
select p.id, coalesce(t.*, null) as t from people p left join teams t on t.id = p.team;

-- whole row in case
select t.id, case when t.id > 3 then t end as r from teams t;

-- whole row distinct from
select a.id from teams a join teams b on b.id = a.parent where a is distinct from b;

-- all columns of an alias
select t.* from teams t;

-- all columns of two tables
select p.*, t.title from people p join teams t on t.id = p.team;

-- whole row of a partitioned table
select s from sales s where s.amount > 20;

-- whole row of a parent
select a from animals a;

-- max of a whole row
select max(q)::text as m from (select id, title from teams) q;

-- whole row in a window
select t.id, lag(t) over (order by t.id) as before from teams t;

-- whole row in a lateral subquery
select p.id, l.r from people p, lateral (select t as r from teams t where t.id = p.team) l;

-- whole row of an outer query in a subquery
select p.id, (select to_jsonb(p)) as j from people p;

-- hash of a row
select id, md5(t::text) as h from teams t;

-- whole row of a sum
select to_jsonb(q) as q from (select team, sum(pay) as total from people group by team) q;

-- string_agg of rows as text
select parent, string_agg(t::text, '; ' order by id) as s from teams t group by parent;

-- whole row under union
select a::text as a from (select id from teams) a union all select to_jsonb(b)::text from (select id from
people) b;

-- composite column
select id, corner from things;

-- composite field
select id, (corner).x as x, (corner).y as y from things;

-- composite constructor
select id, row(id, small)::spot as s from things;

-- composite compared
select a.id from things a where a.corner = row(1, 1)::spot;

-- composite is null
select id from things where corner is null;

-- composite from text
select id, ('(' || id || ',2)')::spot as s from things;

-- composite from a function
select id, moved(row(id, 1)::spot, 3) as s from things;

-- fields of a composite function
select id, (moved(corner, 1)).* from things;

-- composite array
select id, corners[1] as c, (corners[2]).y as y from things;

-- composite in a group
select corner, count(*) from things group by corner;

-- composite unnested
select t.id, c.x, c.y from things t, unnest(t.corners) c;

-- function with out arguments
select t.id, b.lowest, b.highest from things t, bounds(t.grid) b;

-- function with out arguments in the list
select id, (bounds(grid)).highest as h from things;

-- row comparison
select id from people where (team, id) > (2, 5);

-- row equality with a subquery
select id from people where (team, name) in (select id, 'ann' || id from teams);

-- row comparison of subqueries
select id from teams t where (t.id, t.parent) = (select max(id), 1 from teams);
