-- union all
select k from t union all select y from u;

-- union
select k, s from t union select y, s from u;

-- union of types
select k from t union all select z from w;

-- union of numerics
select n from t union select n from u;

-- union of sums
select sum(n) from t union all select n from u;

-- union of three
select k from t union select y from u union all select k from w;

-- intersect
select k from t intersect select k from u;

-- intersect all
select k from t intersect all select k from u;

-- except
select k from t except select k from u;

-- except all
select k, x from t except all select k, y from u;

-- except of types
select x from t except all select z from w;

-- nested
(select k from t intersect select k from u) except (select y from u union select z from w);

-- with limit
select k from t union all select y from u order by 1 desc nulls last limit 3;

-- limited arm
(select id from t order by id limit 2) union all select y from u;

-- of groups
select k, count(*) from t group by k except select k, count(*) from u group by k;

-- above
select r.k, count(*) from (select k from t union all select k from u) r group by r.k;

-- filtered
select r.k from (select k, x from t union all select k, y from u) r where r.x > 1;

-- an arm whose expressions have no names
select k, 0 as n from t union all select distinct x, k + 1 from t;
