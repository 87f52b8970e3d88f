-- array of an ordered subquery
select array_agg(x) as a from (select x from t order by x) s;

-- array by a column that the subquery does not show
select array_agg(x) as a from (select x from t order by id desc) s;

-- text of an ordered subquery
select string_agg(s, ',') as a from (select s, id from t order by id desc) q;

-- json of a WITH query in order
with o as (select id, x from t order by x desc, id) select json_agg(id) as a from o;

-- json object of a view in order
select json_object_agg(id, x) as a from in_order;

-- json object in which the last of equal names stays
select jsonb_object_agg(coalesce(s, '-'), id) as a from (select s, id from t order by id desc) q;

-- aggregate of one's own over an ordered subquery
select last_one(id) as a from (select id from t order by x, id) q;

-- any value of an ordered subquery, through a filter and another subquery
select (array_agg(id))[1] as a from (select id from (select id, k from t order by k, id desc) p where k > 0) q;

-- arrays of groups
select k, array_agg(id) as a from (select id, k from t order by k, id desc) q group by k;

-- arrays of groups, filtered
select x, k, array_agg(id) filter (where id > 2) as a, count(*) as n, max(id) as m
from (select * from t order by x, k, id desc) q group by x, k;

-- groups that gather nothing
select k, count(*) as n, max(id) as m, sum(x) as s from in_order group by k;

-- array in an order that the subquery refines
select array_agg(id order by k) as a from (select id, k from t order by k, id desc) q;

-- distinct values have an order of their own
select string_agg(distinct s, ',') as a from (select s from t order by id) q;

-- array of the first rows
select array_agg(id) as a from (select id from t order by x desc, id limit 3) q;

-- array of first rows of each
select array_agg(id) as a from (select distinct on (k) k, id from t order by k, id desc) q;

-- array of distinct rows in order
select array_agg(x) as a from (select distinct x from t order by x desc) q;

-- array of groups in the order of an aggregate
select array_agg(k) as a from (select k from t group by k order by count(*) desc, k) q;

-- array of a set operation in order
select array_agg(v) as a from (select id as v from t union select y from u order by 1 desc) q;

-- ARRAY of a query in order
select id, array(select y from u where u.k = t.k order by y desc) as a from t;

-- ARRAY of distinct rows in order
select array(select distinct x from t order by x desc) as a;

-- ARRAY of a set operation in order
select array(select y from u union select x from t order by 1) as a;

-- array in order below a join
select u.y, q.a from u join (select k, array_agg(id) as a from (select id, k from t order by k, id desc) p
group by k) q on q.k = u.k;

-- array in order, correlated
select id, (select array_agg(y) from (select y from u where u.k = t.k order by y desc) q) as a from t;

-- array in order, correlated by an inequality
select id, q.a from t, lateral (select array_agg(y) as a from (select y from u where u.k < t.k
order by y desc) p) q;

-- first rows of an ordered subquery
select * from (select id, x from t order by x, id) q limit 3;

-- first rows of a view in order
select id from in_order offset 1 fetch first 2 rows only;

-- first rows of first rows
select * from (select id, x from t order by x desc, id limit 4) q limit 2;

-- first rows by an order that the subquery refines
select * from (select id, k from t order by k, id desc) q order by k limit 3;

-- first rows with ties by their own order
select * from (select id, k from t order by k, id desc) q order by k fetch first 2 rows with ties;

-- first of each of an ordered subquery
select distinct on (k) k, id from (select k, id from t order by k, id desc) q;

-- scalar of the first row of an ordered subquery
select id, (select y from (select y from u where u.k = t.k order by y desc) q limit 1) as v from t;

-- membership among the first of each
select id from t where x in (select distinct on (k) y from u order by k, y);

-- membership among the first rows of an ordered subquery
select id from t where x in (select y from (select distinct y from u order by y) q limit 2);

-- positions in an ordered subquery
select id, row_number() over () as n, lag(id) over () as l from (select id from t order by x desc, id) q;

-- values of a window in an ordered subquery
select id, first_value(id) over () as f, array_agg(id) over () as a from (select id from t order by x desc, id) q;

-- frame of rows in an ordered subquery
select id, sum(id) over (rows between 1 preceding and current row) as n from (select id from t order by x, id) q;

-- partition of a subquery that begins with its order
select k, id, last_value(id) over (partition by k) as l, row_number() over (partition by k) as n
from (select k, id from t order by k, id desc) q;

-- window that does not depend on the order
select k, sum(id) over (partition by k) as n, rank() over (order by k) as r
from (select k, id from t order by id desc) q;

-- rows of a function under a limit
select x, generate_series(1, 3) as g from t order by x, id limit 4;

-- rows of a function under a limit, without an order
select generate_series(1, 2) as g from t limit 3;

-- rows of a function in its own order under a limit
select id, generate_series(1, 3) as g from t order by g desc, id limit 4;

-- rows of a function, distinct and in order, under a limit
select distinct generate_series(1, x) as g from t order by g desc limit 2;

-- array of the rows of a function
select array_agg(g) as a from (select generate_series(1, x) as g from t order by id desc) q;

-- array of the first rows of a function
select array_agg(g) as a from (select unnest(arr) as g from t order by id desc limit 4) q;
