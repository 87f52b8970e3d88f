-- subquery
select r.a from (select k + 1 as a from t where x > 0) r where r.a > 1;

-- subquery with names
select r.a, r.b from (select k, k from t) as r(a, b);

-- with
with c as (select k, count(*) n from t group by k) select k from c where n > 1;

-- with twice
with c as (select k, y from u where y > 0) select a.k, b.y from c a join c b on a.k = b.k;

-- with chained
with a as (select k from t), b(kk) as (select k from a where k > 1) select b.kk, a.k from b, a;

-- with materialized
with c as materialized (select k from t) select k from c;

-- with used in a subquery
with c as (select k from u) select id from t where k in (select k from c);

-- with of q15
with r as (select k, sum(y) total from u group by k) select t.id, r.total from t, r where t.k = r.k
and r.total = (select max(total) from r);

-- values
select v.a, v.b from (values (1, 'a'), (2, null), (2, null)) v(a, b);

-- values joined
select t.id, v.b from t join (values (1, 'a'), (2, 'b')) v(a, b) on v.a = t.k;

-- values at the top
values (1, 'x'), (2, null);

-- in values
select id from t where k in (values (1), (2));

-- no from
select 1 as one, 'x'::text as x;

-- lateral join
select t.id, l.y from t, lateral (select y from u where u.k = t.k) l;

-- lateral inequality
select t.id, l.y from t, lateral (select y from u where u.y < t.x) l;

-- lateral left
select t.id, l.y, l.one from t left join lateral (select y, 1 as one, t.x as tx from u where u.k =
t.k) l on l.y > 0;

-- lateral outer column, left
select t.id, l.tx from t left join lateral (select t.x as tx from u where u.k = t.k) l on true;

-- lateral aggregate
select t.id, l.c, l.m from t, lateral (select count(*) c, max(y) m from u where u.k = t.k) l;

-- lateral aggregate, left
select t.id, l.c, l.m from t left join lateral (select count(*) c, max(y) m from u where u.k = t.k)
l on l.c > 0;

-- lateral aggregate with having
select t.id, l.c from t, lateral (select count(*) c from u where u.k = t.k having count(*) > 1) l;

-- lateral aggregate by inequality
select t.id, l.c from t, lateral (select count(*) c from u where u.y < t.x) l where l.c > 0;

-- lateral limit
select t.id, l.y from t cross join lateral (select y from u where u.k = t.k order by y limit 2) l;

-- lateral limit, left
select t.id, l.y from t left join lateral (select y from u where u.k = t.k order by y desc limit 1)
l on true;

-- lateral limit by inequality
select t.id, l.y from t cross join lateral (select y from u where u.y > t.x order by y limit 2) l;

-- lateral expressions
select t.id, l.b from t, lateral (select t.x + 1 as a) k, lateral (select k.a * 2 as b) l;

-- lateral expressions, left
select t.id, l.b from t left join lateral (select t.x + 1 as b where t.k > 1) l on true;

-- lateral groups
select t.id, l.s, l.c from t, lateral (select s, count(*) c from u where u.k = t.k group by s) l;

-- lateral distinct
select t.id, l.y from t, lateral (select distinct y from u where u.k = t.k) l;

-- lateral window
select t.id, l.r from t, lateral (select rank() over (order by y) r from u where u.k = t.k) l;

-- lateral union
select t.id, l.y from t, lateral (select y from u where u.k = t.k union select z from w where w.k =
t.k) l;

-- lateral union of columns
select t.id, l.v from t, lateral (select t.k as v union all select t.x) l;

-- lateral values
select t.id, l.v from t, lateral (values (t.k), (t.x)) l(v);

-- lateral over lateral
select t.id, m.z from t, lateral (select y from u where u.k = t.k) l, lateral (select z from w where
w.k = l.y) m;

-- unnest
select t.id, e.e from t, unnest(t.arr) e;

-- unnest with ordinality
select t.id, e.a, e.o from t, unnest(t.arr) with ordinality e(a, o);

-- unnest, left
select t.id, e.a from t left join lateral unnest(t.arr) with ordinality e(a, o) on true;

-- unnest joined
select t.id, u.y from t cross join unnest(t.arr) e(a) join u on u.k = e.a;

-- unnest two
select t.id, e.a, e.b from t, unnest(t.arr, t.arr) e(a, b);

-- unnest of several
select t.id, e.a from t join u on t.k = u.k, unnest(array[t.x, u.y]) e(a);

-- unnest in exists
select id from t where exists (select from unnest(t.arr) a where a > 1);

-- unnest in a scalar
select id, (select sum(a) from unnest(t.arr) a) m from t;

-- generate_series
select g from generate_series(1, 3) g;

-- generate_series joined
select t.id, g from t join generate_series(0, 3) g on g = t.k;

-- generate_series lateral
select t.id, g from t, generate_series(1, t.x) g;

-- jsonb_array_elements
select t.id, e.value from t, jsonb_array_elements(t.j -> 'a') e;

-- jsonb_each
select t.id, e.key, e.value from t, jsonb_each(t.j) e;

-- jsonb_to_recordset
select t.id, r.a from t, jsonb_to_recordset(t.j -> 'r') as r(a int, b text);

-- regexp_split_to_table
select t.id, r from t, regexp_split_to_table(t.s, '') r;

-- set function selected
select id, unnest(arr) e from t;

-- set function in an expression
select id, unnest(arr) + 1 e from t where x > 0;

-- set function, distinct
select distinct unnest(arr) e from t;

-- aggregate of a set function
select a, count(*) from (select unnest(arr) a from t) r group by a;

-- view
select s.id, c.c from small s left join counted c on c.k = s.k;

-- view twice
select a.k, b.c from counted a, counted b where a.k = b.c;

-- function of the user
select twice(t.x) as v, u.y from t join u on twice(t.k) = u.y;

-- aggregate of the user
select k, total(x) as v, total(x) filter (where x > 1) as f from t group by k;

-- rows from
select r.a, r.b from rows from (generate_series(1, 2), generate_series(1, 3)) r(a, b);

-- set function of the user
select t.id, v.a from t, several(t.x) v(a);

-- values in a join
select v.a, t.id from (values (1, 'a'), (null, 'b')) v(a, b) left join t on t.k = v.a;

-- lateral distinct of outer columns
select t.id, l.x from t, lateral (select distinct t.x from w) l;

-- left join of a function under a condition
select t.id, e.a from t left join lateral unnest(t.arr) e(a) on e.a > 1;

-- left join of a function under a condition on both
select t.id, u.y, e.a, e.n from t left join u on u.k = t.k
left join lateral unnest(t.arr) with ordinality e(a, n) on e.a = u.y or e.n > t.x;

-- left join of a function on what is never true
select t.id, e.a from t left join lateral unnest(t.arr) e(a) on false;

-- left join of a function that reads nothing
select t.id, g from t left join generate_series(0, 2) g on g = t.k;

-- right join of a function that reads nothing
select t.id, g.n from t right join generate_series(0, 4) g(n) on g.n = t.k and t.x > 0;

-- full join of a function that reads nothing
select t.id, g.n, u.y from t full join generate_series(0, 4) g(n) on g.n = t.k left join u on u.k = g.n;

-- a function that reads nothing comes first
select g.n, t.id from generate_series(0, 4) g(n) left join t on t.k = g.n where g.n <> 1;

-- join of a function by USING
select k, t.id from t join generate_series(0, 2) g(k) using (k);

-- left join of a function by USING
select k, t.id from t left join generate_series(0, 2) g(k) using (k);

-- full join of a function by USING, of two types
select k, t.id from t full join generate_series(0::bigint, 2) g(k) using (k);

-- join of a function of each row by USING
select k, t.id, u.y from t join u using (k) join lateral unnest(t.arr) e(x) using (x);

-- left join of a function of each row by USING
select x, t.id from t left join lateral unnest(t.arr) e(x) using (x);

-- a function joined in a subquery
select id, (select count(*) from u left join generate_series(0, 2) g(n) on g.n = u.y where u.k = t.k) as n from t;

-- a function of each row, joined in a subquery
select id, exists (select from u left join lateral generate_series(1, u.y) g(n) on g.n <> u.k
where u.k = t.k and g.n is null) as m from t;

-- field of a function in the select list
select q.key from (select (jsonb_each(j)).key from t) q;

-- all fields of a function in the select list
select id, (jsonb_each(j)).* from t;

-- field of a function under a limit
select id, upper((jsonb_each_text(j)).key) as a, (jsonb_each_text(j)).value from t order by id limit 3;

-- fields of a function of one's own
select id, (pairs(x)).a + 1 as a, (pairs(x)).b from t;

-- rows of a function in the select list
select id, pairs(x) as p from t;

-- condition on a function in the select list
select * from (select id, unnest(arr) as v, x from t) q where v > 1 and x < 3;

-- rows of several functions side by side
select t.id, z.a, z.b, z.o from t, rows from (unnest(array[3, 4]), generate_series(1, 3)) with ordinality as z(a, b, o);
