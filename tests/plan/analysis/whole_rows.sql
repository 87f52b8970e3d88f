-- whole row
select t from t;

-- whole row as text
select t.id, t::text from t;

-- whole row in json
select to_jsonb(t) as j from t;

-- whole row of a subquery in json
select to_jsonb(q) as j from (select id, k as "the K" from t) q;

-- whole row, renamed columns
select to_jsonb(q) as j from t as q(a, b);

-- whole row of a left join
select t.id, u from t left join u on u.k = t.k;

-- whole row of a left join, counted
select t.id, count(u) from t left join u on u.k = t.k group by t.id;

-- whole row of a left joined subquery
select t.id, to_jsonb(q) as j from t left join (select k, 1 as one from u where y > 0) q on q.k = t.k;

-- whole row of a right join
select to_jsonb(q) as j, u.y from (select id, k from t) q right join u on u.k = q.k;

-- whole rows of a full join
select to_jsonb(q) as a, to_jsonb(r) as b from (select k, x from t) q full join (select k, y from u) r on q.k = r.k;

-- whole row through two left joins
select w.k, to_jsonb(q) as a, to_jsonb(r) as b from w left join ((select id, k from t) q left join
(select k, y from u) r on r.k = q.k) on q.k = w.k;

-- whole row is null
select t.id from t left join u on u.k = t.k where u is null;

-- whole row is not null
select t.id, u is not null as has from t left join u on u.k = t.k;

-- whole row in a group
select k, json_agg(t order by id) as rows from t group by k;

-- whole row as a key
select w, count(*) from w group by w;

-- distinct whole rows
select distinct w from w;

-- whole rows in order
select w from w order by w limit 2;

-- whole rows compared
select a.k, b.z from w a join w b on a = b;

-- whole row in a set
select k from w where w in (select o from w o where o.z > 1);

-- whole row in exists
select t.id from t where exists (select u from u where u.k = t.k);

-- whole row of a view
select s, s.x from small s;

-- whole row of a view, left joined
select w.k, s from w left join small s on s.k = w.k;

-- whole row of an outer query
select id, (select to_jsonb(t)) as j from t;

-- whole row of an outer query, counted inside
select w.k, (select count(*) from u where u.k = w.k and w is not null) as n from w;

-- whole row of a lateral aggregate
select t.id, to_jsonb(l) as j from t left join lateral (select count(*) as c from u where u.k = t.k) l on l.c > 1;

-- whole row of a function
select t.id, p from t, pairs(t.x) p;

-- whole row of values
select to_jsonb(v) as j from (values (1, 'a'), (2, null)) v(n, s);

-- whole row of a with query
with q as (select k, count(*) as n from t group by k) select to_jsonb(q) as j from q;

-- whole row in a window
select k, lag(w) over (order by z, k, v) as before from w;

-- count of rows of nulls
select count(q) from (select null::int as a, null::int as b from t) q;

-- count of distinct rows
select k, count(distinct (x, s)) from t group by k;
