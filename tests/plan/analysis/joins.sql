-- inner
select t.id, u.y from t join u on t.k = u.k;

-- inner, many
select t.id, u.y, w.z from t, u, w where t.k = u.k and u.k = w.k and t.x < w.z;

-- cross
select t.id, w.z from t cross join w;

-- expression keys
select t.id, w.v from t join w on t.k + 1 = w.k * 2;

-- left
select t.id, u.y from t left join u on t.k = u.k;

-- left with more conditions
select t.id, u.y from t left join u on t.k = u.k and u.y > 1 and t.x > 0;

-- left by inequality
select t.id, u.y from t left join u on t.x < u.y;

-- left on true
select t.id, w.z from t left join w on true;

-- left on false
select t.id, w.z from t left join w on false;

-- right
select t.id, u.y from t right join u on t.k = u.k and t.x > 0;

-- full
select t.id, u.y from t full join u on t.k = u.k;

-- full with more conditions
select t.id, w.z from t full join w on t.k = w.k and t.x > 0 and w.z > 1;

-- full using
select k, t.id, u.y from t full join u using (k);

-- full using, of two types
select z, u.y, w.v from w full join (select y as z, y from u) u using (z);

-- left using
select k, id, y from t left join u using (k);

-- right using
select k, id, y from t right join u using (k);

-- inner using, of two types
select z, u.y from w join (select y as z, y from u) u using (z);

-- left using, of two types
select z, w.v from (select y as z from u) u left join w using (z);

-- natural
select k, a.id, b.z from (select id, k from t) a natural join (select k, z from w) b;

-- full chain using
select k, id, y, z from t full join u using (k) full join w using (k);

-- join alias
select j.id, j.y from (t join u using (k)) as j(kk, id);

-- full join alias
select j.k, j.y from (t full join u using (k)) j where j.k > 1;

-- nested in parentheses
select t.id, u.y, w.z from t left join (u join w on u.k = w.k) on t.k = u.k;

-- nested outer
select t.id, u.y, w.z from t left join (u left join w on u.k = w.k) on t.x = u.y;

-- chain of lefts
select t.id, u.y, w.z from t left join u on t.k = u.k left join w on u.y = w.z;

-- left of full
select t.id, u.y, w.z from (t full join u on t.k = u.k) left join w on w.k = u.y;

-- where on the kept side
select t.id, u.y from t left join u on t.k = u.k where t.x > 1;

-- where on the padded side
select t.id, u.y from t left join u on t.k = u.k where u.y > 1;

-- where is null
select t.id from t left join u on t.k = u.k where u.k is null;

-- where is not null
select t.id from t left join u on t.k = u.k where u.y is not null;

-- where coalesced
select t.id from t left join u on t.k = u.k where coalesce(u.y, 0) = 0;

-- where or
select t.id from t left join u on t.k = u.k where u.y > 1 or u.s = 'a';

-- where or with the kept side
select t.id from t left join u on t.k = u.k where u.y > 1 or t.x > 1;

-- where through two
select t.id from t left join u on t.k = u.k left join w on u.y = w.z where w.z = 1;

-- where on one side of full
select t.id, u.y from t full join u on t.k = u.k where t.x > 0;

-- where on the other side of full
select t.id, u.y from t full join u on t.k = u.k where u.y > 0;

-- where on both of full
select t.id, u.y from t full join u on t.k = u.k where u.y > t.x;

-- where between leaves
select t.id, w.v from t left join u on t.k = u.k, w where w.k = u.y;

-- padded expressions
select t.id, coalesce(u.y, -1) a, u.s || '!' b, u.y + 1 c, u.y is null d from t left join u on t.k =
u.k;

-- padded constants
select t.id, r.one from t left join (select k, 1 as one from u) r on t.k = r.k;

-- padded coalesce
select t.id, r.f from t left join (select k, coalesce(y, 7) f from u) r on t.k = r.k;

-- padded aggregate
select t.id, r.c from t left join (select k, count(*) c from u group by k) r using (k);

-- over subqueries
select a.k, b.m from (select distinct k from t) a left join (select k, max(y) m from u group by k) b
on a.k = b.k;

-- aggregate above
select t.k, count(u.y), sum(u.n) from t left join u on t.k = u.k group by t.k;

-- numeric keys
select t.id, u.y from t left join u on t.n = u.n;

-- text keys
select t.id, u.y from t join u on lower(t.s) = u.s;

-- null-safe
select t.id, u.y from t join u on t.k is not distinct from u.k;

-- null-safe left
select t.id, u.y from t left join u on t.k is not distinct from u.k;

-- self join
select a.id, b.id as bid from t a join t b on a.k = b.k and a.id < b.id;

-- subquery in on
select t.id, u.y from t join u on t.k = u.k and u.y in (select z from w);

-- subquery in left on
select t.id, u.y from t left join u on t.k = u.k and u.y in (select z from w);

-- subquery of kept side in on
select t.id, u.y from t left join u on t.k = u.k and exists (select from w where w.k = t.x);

-- no columns
select from t left join u on t.k = u.k;

-- where not, is not null
select t.id from t left join u on t.k = u.k where not (u.y is not null);

-- case over a padded side
select t.id, case when u.y = 1 then u.k else t.x end as c from t left join u on t.k = u.k;

-- any of an array
select t.id, u.y from t join u on u.y = any (t.arr);

-- rows compared
select t.id from t join u on (t.k, t.x) = (u.k, u.y);

-- left on one of an array's elements
select w.k, w.z, t.id from w left join t on w.k = any (t.arr);

-- left on none of an array's elements
select w.k, t.id from w left join t on w.k <> all (t.arr);

-- full on one of an array's elements and a key
select w.k, t.id from w full join t on w.k = t.k and w.k = any (t.arr);

-- one of an array's elements, in WHERE
select w.k, t.id from w, t where w.k = any (t.arr);

-- one of no elements is not null where a join pads
select w.k, u.y, t.x = any ('{}'::int[]) as e from w join u on u.k = w.k left join t on t.k = w.k;

-- none of no elements is true where a join pads
select w.k, t.id from w left join t on t.k = w.k where t.x <> all ('{}'::int[]);

-- none of an array's elements, where the value is padded
select u.y, t.id from t left join u on t.k = u.k where u.y <> all (t.arr);

-- not one of an array's elements, where the value is padded
select u.y, t.id from t left join u on t.k = u.k where not u.y = any (t.arr);

-- an element joins a padded array
select w.k, t.arr || 1 as a, 0 || t.arr as b, t.arr || t.arr as c from w left join t on t.k = w.k;

-- an element joins a padded array, in WHERE
select w.k, t.id from w left join t on t.k = w.k where t.arr || 1 = '{1}'::int[];

-- texts join a padded text
select w.k, t.s || 'x' as a, t.s || t.s as b, upper(t.s) || 1 as c from w left join t on t.k = w.k;

-- texts join a padded text, in WHERE
select w.k, t.id from w left join t on t.k = w.k where t.s || w.v <> 'x' and 'y' || t.s <> 'a';
