-- aggregate
select id, (select max(y) from u) m from t;

-- aggregate in where
select id from t where x < (select avg(y) from u);

-- aggregate, correlated
select id, (select max(y) from u where u.k = t.k) m from t;

-- count, correlated
select id, (select count(*) from u where u.k = t.k) c from t;

-- count in where
select id from t where (select count(*) from u where u.k = t.k) = 0;

-- count filtered
select id, (select count(y) filter (where y > 1) + 1 from u where u.k = t.k) c from t;

-- of q17
select sum(t.n) / 7.0 from t, w where t.k = w.k and t.n < (select 0.2 * avg(n) from u where u.k =
w.k);

-- of q02
select t.id from t join w on t.k = w.k where w.z = (select min(z) from w w2 where w2.k = t.k);

-- of q20
select id from t where k in (select k from u where n > (select 0.5 * sum(z) from w where w.k = u.k));

-- coalesced
select id, coalesce((select sum(y) from u where u.k = t.k), 0) c from t;

-- two correlations
select id, (select max(n) from u where u.k = t.k and u.y = t.x) m from t;

-- correlated with an expression
select id, (select max(y) from u where u.k + 1 = t.k * 2) m from t;

-- with having
select id, (select sum(y) from u where u.k = t.k having count(*) > 1) m from t;

-- outer columns in the result
select id, (select max(y) + t.x from u where u.k = t.k) m from t;

-- count plus outer
select id, (select count(*) + t.x from u where u.y < t.x) m from t;

-- count by inequality
select id, (select count(*) from u where u.y < t.x) c from t;

-- max by inequality
select id, (select max(y) from u where u.y < t.x and u.k = t.k) c from t;

-- of outer columns inside
select id, (select sum(y * t.x) from u where u.k = t.k) c from t;

-- one row
select id, (select max(z) from w where w.k = t.k group by w.k) m from t;

-- by key
select u.y, (select x from t where t.id = u.k) m from u;

-- by key, in where
select y from u where y = (select x from t where t.id = u.k);

-- limit one
select id, (select y from u where u.k = t.k order by y desc nulls last limit 1) m from t;

-- limit one, uncorrelated
select id, (select y from u order by y limit 1) m from t;

-- limit one by inequality
select id, (select y from u where u.y < t.x order by y desc limit 1) m from t;

-- limit and offset
select id, (select y from u where u.k = t.k order by y, s, n, b limit 1 offset 1) m from t;

-- distinct
select id, (select distinct k from u where u.k = t.k) m from t;

-- without from
select id, (select x + 1) m from t;

-- without from, filtered
select id, (select x + 1 where k > 1) m from t;

-- over nothing
select id, (select y from u where false) m from t;

-- in an expression
select id, x + (select count(*) from w where w.k = t.k) * 2 m from t;

-- in case
select id, case when x > 1 then (select max(y) from u where u.k = t.k) else 0 end m from t;

-- several
select id, (select max(y) from u where u.k = t.k) a, (select min(y) from u where u.k = t.k) b,
(select count(*) from w where w.k = t.x) c from t;

-- nested
select id, (select max(y) from u where u.k = t.k and u.y > (select min(z) from w where w.k = u.k)) m
from t;

-- nested, two levels out
select id, (select max(y) from u where u.k = t.k and u.y > (select min(z) from w where w.k = t.k)) m
from t;

-- in having
select k, sum(x) from t group by k having sum(x) > (select avg(y) from u);

-- of q11
select k, sum(x * n) v from t group by k having sum(x * n) > (select sum(x * n) * 0.1 from t);

-- of a group
select k, (select max(y) from u where u.k = t.k) m, count(*) from t group by k;

-- of an aggregate
select k, (select count(*) from u where u.y = max(t.x)) m from t group by k;

-- inside an aggregate
select k, sum((select max(y) from u where u.k = t.k)) m from t group by k;

-- row
select id from t where (k, x) = (select k, y from u order by k, y limit 1);

-- array
select id, array(select y from u where u.k = t.k order by y) a from t;

-- array, uncorrelated
select id, array(select y from u order by y desc) a from t;

-- over a union
select id, (select sum(y) from (select y from u where u.k = t.k union all select z from w where w.k
= t.k) r) m from t;

-- over a window
select id, (select max(r) from (select rank() over (order by y) r from u where u.k = t.k) q) m from
t;

-- over groups
select id, (select max(c) from (select count(*) c from u where u.k = t.k group by y) q) m from t;

-- over a left join
select id, (select count(w.z) from u left join w on w.k = u.k where u.k = t.k) m from t;

-- derived by inequality
select id, (select max(c) from (select count(*) c from u where u.y < t.x) q) m from t;

-- with query inside
select id, (with q as (select y from u where u.k = t.k) select sum(y) from q) m from t;

-- order by
select id from t order by (select max(y) from u where u.k = t.k) nulls first, id limit 3;

-- numeric
select id, (select sum(n) from u where u.k = t.k) + n m from t;

-- string_agg
select id, (select string_agg(s, ',' order by s, y) from u where u.k = t.k) m from t;

-- above an outer join
select t.id, u.y, (select max(z) from w where w.k = u.k) m from t left join u on t.k = u.k;

-- several rows in a column that nobody reads
select id from (select id, (select y from u) as v from t) q;

-- several rows in a column that nobody reads, correlated
select id from (select id, (select y from u where u.k = t.k) as v from t) q;

-- several rows in a column that nobody reads, counted
select count(*) as n from (select id, (select y from u where u.y > t.x) as v from t) q;
