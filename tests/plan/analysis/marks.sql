-- exists
select id from t where exists (select 1 from u where u.k = t.k);

-- not exists
select id from t where not exists (select 1 from u where u.k = t.k and u.y > 1);

-- exists, uncorrelated
select id from t where exists (select from u where y = 1);

-- exists by inequality
select id from t where exists (select from u where u.y > t.x);

-- exists of q21
select id from t where exists (select from w where w.k = t.k and w.z <> t.x) and not exists (select
from u where u.k = t.k and u.y <> t.x);

-- exists with a constant
select id from t where exists (select from u where t.x > 1);

-- exists in the select list
select id, exists (select from u where u.k = t.k) as e from t;

-- exists under or
select id from t where x = 1 or exists (select from u where u.k = t.k);

-- exists under case
select id, case when exists (select from u where u.k = t.k) then x end c from t;

-- exists with limit
select id from t where exists (select from u where u.k = t.k order by y limit 1);

-- exists with an aggregate
select id from t where exists (select count(*) from u where u.k = t.k);

-- exists with having
select id from t where exists (select count(*) from u where u.k = t.k having count(*) > 1);

-- exists with empty having
select id from t where exists (select count(*) from u where u.k = t.k having count(*) = 0);

-- exists with groups
select id from t where exists (select y from u where u.k = t.k group by y having count(*) > 1);

-- exists with distinct
select id from t where exists (select distinct y from u where u.k = t.k);

-- exists with offset
select id from t where exists (select y from u where u.k = t.k offset 1);

-- exists over a union
select id from t where exists (select y from u where u.k = t.k union all select z from w where w.k =
t.k);

-- exists over a union, half correlated
select id from t where exists (select y from u where u.k = t.k union all select z from w where z >
2);

-- exists over a join
select id from t where exists (select from u join w on u.k = w.k where u.y = t.x);

-- exists over a left join
select id from t where exists (select from u left join w on u.k = w.k where u.y = t.x and w.z is
null);

-- exists over a left join with outer on
select id from t where exists (select from u left join w on u.k = w.k and w.z = t.x where w.z is
null);

-- exists in exists
select id from t where exists (select from u where u.k = t.k and exists (select from w where w.k =
u.k));

-- exists in exists, two levels out
select id from t where exists (select from u where u.k = t.k and not exists (select from w where w.k
= u.k and w.z = t.x));

-- exists of a derived table
select id from t where exists (select from (select y + 1 as y1 from u where u.k = t.k) r where r.y1
> 1);

-- exists of a derived aggregate
select id from t where exists (select from (select count(*) c from u where u.k = t.k) r where r.c >
1);

-- exists with null-safe correlation
select id from t where exists (select from u where u.k is not distinct from t.k);

-- in
select id from t where k in (select k from u);

-- in, correlated
select id from t where k in (select u.k from u where u.y = t.x);

-- in with expressions
select id from t where k + 1 in (select y * 2 from u);

-- in of other types
select id from t where x in (select z from w);

-- not in
select id from t where x not in (select y from u);

-- not in without nulls
select id from t where x not in (select y from u where y is not null);

-- not in over not null
select id from t where id not in (select z from w);

-- not in, correlated
select id from t where x not in (select y from u where u.k = t.k);

-- not in over nothing
select id from t where x not in (select y from u where false);

-- not in, nullable value only
select id from t where x not in (select z from w);

-- not in under or
select id from t where id = 1 or x not in (select y from u);

-- in as a value
select id, x in (select y from u) as i, x not in (select y from u) as n from t;

-- in as a value, correlated
select id, x in (select y from u where u.k = t.k) as i from t;

-- in, negated twice
select id from t where not (not (x in (select y from u)));

-- in is null
select id from t where (x in (select y from u)) is null;

-- in under case
select id, case when x in (select y from u) then 1 when x not in (select z from w) then 2 else 3 end
c from t;

-- rows in
select id from t where (k, x) in (select k, y from u);

-- rows not in
select id from t where (k, x) not in (select k, y from u);

-- rows in as a value
select id, (k, x) in (select k, y from u) as i from t;

-- rows in, half nullable
select id, (id, x) in (select k, z from w) as i from t;

-- any
select id from t where x > any (select y from u);

-- any as a value
select id, x > any (select y from u where u.k = t.k) as i from t;

-- not any
select id from t where not (x > any (select y from u));

-- all
select id from t where x >= all (select y from u);

-- all, correlated
select id from t where x >= all (select y from u where u.k = t.k);

-- all as a value
select id, x >= all (select y from u where u.k = t.k) as i from t;

-- not all
select id from t where not (x >= all (select y from u where u.k = t.k));

-- all over not null
select id from t where id > all (select z from w where w.k = t.k);

-- equal to all
select id from t where x = all (select y from u where u.k = t.k);

-- unequal to all
select id from t where x <> all (select y from u where u.k = t.k);

-- unequal to any
select id from t where x <> any (select y from u where u.k = t.k);

-- like any
select id from t where s like any (select s from u);

-- in an aggregate
select id from t where x in (select max(y) from u);

-- in a correlated aggregate
select id, x in (select max(y) from u where u.k = t.k) as i from t;

-- not in a correlated count
select id from t where x not in (select count(*) from u where u.k = t.k);

-- in a correlated count with having
select id, x in (select count(*) from u where u.k = t.k having max(y) > 1) i from t;

-- in groups
select id from t where k in (select k from u group by k having sum(y) > 2);

-- in with limit
select id from t where id in (select z from w order by z, k, v limit 2);

-- in a union
select id from t where x in (select y from u union select z from w);

-- in an except
select id from t where x in (select y from u except select z from w);

-- in having
select k, count(*) from t group by k having k in (select k from u);

-- exists in having
select k, sum(x) from t group by k having exists (select from u where u.k = t.k and u.y =
count(t.x));

-- exists of a group in the select list
select k, exists (select from u where u.k = t.k) as e from t group by k;

-- in of an aggregate
select k, max(x) in (select y from u) as i from t group by k;

-- in inside an aggregate
select k, count(*) filter (where x in (select y from u)) c, sum(case when exists (select from w
where w.k = t.k) then 1 end) from t group by k;

-- mark above an outer join
select t.id, u.y from t left join u on t.k = u.k where not exists (select from w where w.k = u.k);

-- same table inside
select a.id from t a where a.x > any (select b.x from t b where b.k = a.k);

-- a negated test inside of another
select id, ((x > 1) is not true) is not false as m from t
where (k in (select y from u where (b is not true) is not true)) is not true;

-- a quantifier inside of another
select id from t where k <> all (array[case when x <> all (array[1, k]) then 1 else 2 end]);

-- among values that are columns
select id from t where x in (values (t.k), (1));

-- among values of a surrounding query
select t.id, q.y from t, lateral (select y from u where u.y in (values (t.x), (1))) q;
