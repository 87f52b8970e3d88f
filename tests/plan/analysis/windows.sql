-- rank
select id, rank() over (partition by k order by x), row_number() over (partition by k order by id)
from t;

-- no partition
select id, sum(x) over (), count(*) over (order by id) from t;

-- several partitions
select id, sum(x) over (partition by k), max(x) over (partition by s), avg(n) over (partition by k,
s) from t;

-- lag and lead
select id, lag(x) over (order by id), lead(x, 2, -1) over (partition by k order by id) from t;

-- first and last
select id, first_value(x) over w, last_value(x) over w, nth_value(x, 2) over w from t window w as
(partition by k order by id rows between unbounded preceding and unbounded following);

-- frames
select id, sum(x) over (order by id rows between 1 preceding and 1 following exclude current row) a,
count(*) over (order by k range between 1 preceding and current row), sum(x) over (order by k groups
between 1 preceding and current row exclude ties) from t;

-- named
select id, sum(x) over w, rank() over (w order by id) from t window w as (partition by k);

-- filter
select id, count(*) filter (where x > 1) over (partition by k) from t;

-- expressions
select id, sum(x + 1) over (partition by k + 1 order by lower(s), id), 100 * x / sum(x + 10) over
(partition by k) from t;

-- over groups
select k, sum(count(*)) over (order by k), rank() over (order by sum(x) desc nulls last, k) from t
group by k;

-- over a join
select t.id, u.y, rank() over (partition by t.k order by u.y, t.id) from t left join u on t.k = u.k;

-- filtered above
select r.id from (select id, row_number() over (partition by k order by id) n from t) r where r.n =
1;

-- filtered by partition
select r.id, r.c from (select id, k, count(*) over (partition by k) c from t) r where r.k = 1;

-- in order by
select id from t order by rank() over (order by x nulls first), id limit 3;

-- with a subquery
select id, sum((select max(y) from u where u.k = t.k)) over (partition by k) from t;

-- distinct
select distinct k, count(*) over (partition by k) from t;

-- aggregate of the user
select id, total(x) over (partition by k) as v, total(x) filter (where x > 1) over () as f from t;

-- over groups, of the user
select k, total(count(*)::int) over (order by k) as v, total(x) as s from t group by k;
