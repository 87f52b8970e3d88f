-- limit
select id, x from t order by x, id limit 3;

-- descending
select id, x + 1 as y from t order by x + 1 desc, id limit 3;

-- offset
select id from t order by id offset 2;

-- limit and offset
select id from t order by id desc limit 2 offset 1;

-- with ties
select x from t order by x nulls first fetch first 2 rows with ties;

-- limit zero
select id from t order by id limit 0;

-- limit all
select id from t order by id limit all;

-- no limit
select id from t order by x;

-- by a hidden column
select s from t order by id limit 3;

-- by an output
select x as id, id as o from t order by o limit 2;

-- of groups
select k, count(*) c from t group by k order by c desc, k limit 2;

-- of a join
select t.id, u.y from t join u on t.k = u.k order by t.id, u.y, u.s, u.n, u.b limit 3;

-- in from
select r.id from (select id from t order by id limit 3) r where r.id > 1;

-- joined
select r.id, w.z from (select id, k from t order by id limit 3) r join w on w.k = r.k;

-- distinct by a subquery
select distinct (select max(y) from u where u.k = t.k) as m from t order by 1 limit 2;
