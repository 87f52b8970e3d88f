-- numbers
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n from r;

-- reachable, with cycles
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y) select k, y from r;

-- depth and path
with recursive r(id, depth, path) as (select id, 0, array[id] from t where k = 1 union all select t.id, r.depth + 1,
r.path || t.id from t join r on t.k = r.id where not t.id = any (r.path) and r.depth < 3) select id, depth, path from r;

-- names of its own
with recursive r(a, b) as (select k, y from u union select r.a, u.y from r, u where u.k = r.b) select b, a from r
where a > 1;

-- fewer names than columns
with recursive r(a) as (select k, y from u union select r.a, u.y from r, u where u.k = r.y) select a, y from r;

-- no recursion at all
with recursive r as (select k from t union select k from u) select k from r;

-- used twice
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select a.k, b.y from r a join r b on a.y = b.k;

-- joined and filtered
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select t.id, r.y from t join r on r.k = t.k where r.y > t.x;

-- left joined
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select t.id, r.y from t left join r on r.k = t.k;

-- aggregated
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select k, count(*) as n, max(y) as m, array_agg(y order by y) as ys from r group by k;

-- window above
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select k, y, rank() over (partition by k order by y) as place from r;

-- first rows above
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select k, y from r order by k, y limit 4;

-- two recursions
with recursive a as (select k, y from u union select a.k, u.y from a join u on u.k = a.y),
b(n) as (select 1 union all select n + 1 from b where n < 3) select a.k, b.n from a join b on a.y >= b.n;

-- one recursion over another
with recursive a as (select k, y from u union select a.k, u.y from a join u on u.k = a.y),
b(k, z) as (select k, z from w union select b.k, a.y from b join a on a.k = b.z) select k, z from b;

-- over a plain WITH query
with recursive e as (select k, y from u where y > 0), r as (select k, y from e union select r.k, e.y from r
join e on e.k = r.y) select k, y from r;

-- a WITH query inside
with recursive r as (with e as (select k, y from u) select k, y from e union select r.k, e.y from r
join e on e.k = r.y) select k, y from r;

-- inside a subquery in from
select t.id, s.y from t join (with recursive r as (select k, y from u union select r.k, u.y from r join u on
u.k = r.y) select k, max(y) as y from r group by k) s on s.k = t.k;

-- in an expression
select id, (with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select count(*) from r where r.k = t.k) as n from t;

-- asked by exists and in
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select id from t where exists (select from r where r.k = t.k) and x not in (select y from r where y is not null);

-- correlated by an inequality above it
with recursive r as (select k, y from u union select r.k, u.y from r join u on u.k = r.y)
select id, (select count(*) from r where r.y < t.x) as n from t;

-- several bases and a union in the recursive term
with recursive r(k) as (select k from t union select z from w union (select u.y from u join r on u.k = r.k
union all select 7)) select k from r;

-- union all over a chain that ends
with recursive r(k, n) as (select k, 0 from u union all select u.y, r.n + 1 from r join u on u.k = r.k and
r.n < 3) select k, n from r;

-- outer join in the recursive term
with recursive r(k, y, n) as (select k, y, 0 from u union all select r.y, u.y, r.n + 1 from r left join u on
u.k = r.y where r.n < 2) select k, y, n from r;

-- a condition with a subquery in the recursive term
with recursive r(k, y) as (select k, y from u union select r.k, u.y from r join u on u.k = r.y
where u.y in (select z from w) and exists (select from t where t.k = u.k)) select k, y from r;

-- a scalar subquery in the recursive term
with recursive r(k, n) as (select k, 0::bigint from u union all select u.y, r.n + (select count(*) from w
where w.k = u.k) + 1 from r join u on u.k = r.k where r.n < 4) select k, n from r;

-- groups and a window in the recursive term
with recursive r(k, n, m) as (select k, 0, 0::bigint from u union all select p.k, p.n + 1, row_number() over (partition by
p.k order by p.y) from (select u.y as k, r.n, u.y from r join u on u.k = r.k) p where p.n < 2) select k, n, m from r;

-- lateral in the recursive term
with recursive r(k, n) as (select k, 0 from u union all select l.y, r.n + 1 from r cross join lateral
(select y from u where u.k = r.k) l where r.n < 3) select k, n from r;

-- a function in the recursive term
with recursive r(a, n) as (select k, 0 from t union all select a.v + r.a, r.n + 1 from r cross join
generate_series(1, 2) a(v) where r.n < 2) select a, n from r;

-- text and nulls
with recursive r(s, n) as (select s, 0 from u union all select r.s || '/' || u.s, r.n + 1 from r join u on
u.k = r.n) select s, n from r;

-- distinct in the recursive term
with recursive r(k, n) as (select k, 0 from u union all select distinct u.y, r.n + 1 from r join u on u.k = r.k
where r.n < 3) select k, n from r;

-- except in the recursive term
with recursive r(k) as (select k from u union (select u.y from u join r on u.k = r.k except select z::int from w))
select k from r;

-- cycle
with recursive r(k, y) as (select k, y from u where y > 0 union all select u.k, u.y from r join u on u.k = r.y)
cycle k set is_cycle using path select k, y, is_cycle from r where k < 3;

-- cycle with union and another alias
with recursive r as (select y, s from u where k = 1 union select e.y, e.s from u e join r before on e.k = before.y)
cycle y set met using way select y, s, met from r where met;

-- using
with recursive r(k, y) as (select k, y from u union select k, w.z::int from r join w using (k)) select k, y from r;
