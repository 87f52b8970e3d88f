-- group
select k, count(*), sum(x), min(s), max(n), avg(n), avg(x) ax from t group by k;

-- no groups
select count(*), sum(x), avg(n), max(s) from t where x > 100;

-- expressions
select k + 1 as a, lower(s), count(*) + 1 as b from t group by k + 1, lower(s);

-- having
select k from t group by k having count(*) > 1 and max(x) > 0;

-- having alone
select 1 as one from t having count(*) > 3;

-- filter
select k, count(*) filter (where x > 0), sum(n) filter (where x > 0) from t group by k;

-- count distinct
select k, count(distinct x) a, count(distinct s) filter (where x > 0) b from t group by k;

-- count distinct numeric
select count(distinct n) a, count(distinct j) b from t;

-- others
select k, array_agg(x order by id), string_agg(s, ',' order by id), jsonb_agg(x order by id),
stddev(x), bool_or(x > 1), every(x > 0) from t group by k;

-- ordered sets
select k, percentile_cont(0.5) within group (order by x), mode() within group (order by s) from t
group by k;

-- determined columns
select t.id, t.s, count(u.y) from t left join u on u.k = t.k group by t.id;

-- over groups
select max(c) from (select k, count(*) c from t group by k) r;

-- grouping sets
select k, x, count(*), grouping(k, x) a, grouping(x) b from t group by grouping sets ((k, x), (k),
());

-- rollup
select k, x, sum(id) from t group by rollup (k, x);

-- cube
select k, s, count(*), grouping(k) a, grouping(s) b from t group by cube (k, s);

-- rollup beside a key
select k, x, s, count(*) from t group by k, rollup (x, s);

-- sets of expressions
select k + 1 as a, count(*) from t group by grouping sets ((k + 1), ()) having count(*) > 1;

-- sets, having grouping
select k, x, count(*) from t group by cube (k, x) having grouping(k) = 0;

-- sets, distinct
select k, count(*) from t group by distinct rollup (k, x), rollup (k);

-- sets over nothing
select k, count(*) from t where false group by grouping sets ((k), ());

-- sets and sum of a key
select k, sum(k) from t group by rollup (k);

-- sets ordered
select k, x, count(*) c from t group by rollup (k, x) order by c desc, k nulls first, x nulls first
limit 3;

-- sets in a subquery
select id from t where k in (select k from u group by rollup (k));

-- sets over a join
select t.k, w.v, count(*) from t join w on t.k = w.k group by cube (t.k, w.v);

-- distinct
select distinct k, s from t;

-- distinct expressions
select distinct k + 1, upper(s) from t;

-- distinct of groups
select distinct count(*) from t group by k;

-- distinct over a join
select distinct t.k, u.y from t left join u on t.k = u.k;

-- distinct on
select distinct on (k) k, id from t order by k, id desc;

-- distinct on expressions
select distinct on (k % 2, s) s, id, x from t order by k % 2, s, id;

-- distinct on, limited
select distinct on (k) k, id from t order by k nulls first, id limit 2;

-- distinct on with groups
select distinct on (k) k, s, count(*) c from t group by k, s order by k, count(*) desc, s;

-- distinct limited
select distinct k, s from t order by s desc, k limit 3;

-- sets without calls
select k from t group by cube (k);

-- the empty set alone
select 1 as one from t group by ();

-- sets of which nothing is shown
select 1 as one from u right join (select from t group by grouping sets ((), (k))) s on true;

-- a group of which nothing is shown
select id, 1 as one from t, (select from u having true) s;

-- sets of one column and what is computed of it
select a, a + 1 as c, b, grouping(b, a) as g from (select k as a, k + 1 as b from t) s group by cube (a, b);

-- sets of a constant
select 0 as zero, a, b, b + 0 as c, sum(b) as s, grouping(b) as g from (select k as a, 0 as b from t) s
group by grouping sets ((a, b), (a), ()) having count(*) > 0;

-- sets of merged columns
select k, t.x, u.y, count(*) as n, grouping(k) as g from t full join u using (k) group by rollup (k, t.x, u.y);

-- sets of two columns that a join makes equal
select t.k, u.k as other, count(*) as n, grouping(t.k, u.k) as g from t join u on t.k = u.k
group by cube (t.k, u.k);

-- sets of a column and what is computed of it, asked by a subquery
select a, b, (select max(y) from u where u.k = s.a) as m, (select min(z) from w where w.k = s.b) as z
from (select k as a, k + 1 as b from t) s group by cube (a, b);

-- aggregate of an outer query, of a subquery
select (select max((select max(u.y) from u where u.k = o.k))) as m from t o;

-- aggregate of an outer query, of a subquery, filtered
select (select max((select max(u.y) from u where u.k = o.k)) filter (where o.x < 3)) as m from t o;

-- aggregate of an outer query, two levels out
select o.k, (select (select sum(o.x))) as m from t o group by o.k;

-- aggregate of an outer query in having
select k from t o group by k having (select max((select min(u.y) from u where u.k = o.x))) > 0;

-- aggregate of an outer query in an order
select k from t o group by k order by (select max((select min(u.y) from u where u.k = o.x))), k limit 2;

-- aggregate of an outer query in WITH
select (with q as (select max(o.x) as m) select m from q) as m from t o;

-- aggregate of the inner query that reads both
select o.id, (select sum(o.x + u.y) from u where u.k = o.k) as m from t o;

-- window of the inner query over a row of the outer one
select o.id, (select sum(o.x) over ()) as m from t o;

-- grouping in a subquery
select k, x, (select grouping(o.k, o.x)) as g, (select (select grouping(o.x))) as h from t o group by cube (k, x);

-- grouping in a subquery of a lateral column
select (select grouping(q.x)) as g from t cross join lateral (select (select t.k) as x) q group by q.x;

-- condition that is a key as a whole
select (k < x and x < 3) as b, count(*) as n from t group by rollup ((k < x and x < 3)) having k < x and x < 3;

-- condition that is the only key as a whole
select count(*) as n from t group by (k < x and x < 3) having k < x and x < 3;

-- grouping by the rows of a function
select generate_series(1, x) as g, count(*) as n from t group by 1;

-- grouping by the rows of a function, filtered
select * from (select generate_series(1, x) as g, count(*) as n from t group by 1) q where g = 1;

-- columns of a surrounding query beside groups, correlated by an inequality
select t.id, q.* from t, lateral (select u.k as uk, t.x, count(*) as c from u where u.y <> t.x group by u.k) q;

-- having with a column of a surrounding query, correlated by an inequality
select id from t where exists (select t.k from u where u.y < t.x group by u.k having count(*) > t.k);
