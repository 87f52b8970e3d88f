-- operators by name
select id, x ^ 2 as a, |/ abs(x)::float as b, @ (-x) as c, s !~ 'a' as d, s !~* 'A' as e, s ^@ 'a' as f from t;

-- operator with any
select id from t where s ~ any (array['a', 'b']) and s !~ all (array['z']);

-- tests after a value
select y, b is unknown as a, b is not unknown as c, s is normalized as d, s is not nfc normalized as e from u;

-- substring similar
select id, substring(s similar 'a#"%#"' escape '#') as a, substring(s from 1 for 1) as b from t;

-- trim
select id, trim(leading from s) as a, trim(trailing 'b' from s) as b, trim(s) as c, trim(both 'a' from s) as d from t;

-- bit strings
select id, x::bit(4) & B'0110' as a, B'1' || x::bit(3)::varbit as b, '101'::bit varying(2) as c from t;

-- frame without an end
select id, sum(x) over (partition by k order by id rows 1 preceding) as s from t;

-- array of a subquery and a value
select id, array[(select max(y) from u), x] as a, arr[(select 1)] as b from t;

-- rows from, lateral
select t.id, r.a, r.b from t, rows from (unnest(t.arr), generate_series(1, 2)) as r(a, b);

-- rows from with ordinality, left joined
select t.id, r.a, r.n from t left join rows from (unnest(t.arr), generate_series(1, t.x)) with ordinality
as r(a, b, n) on r.n > 1;

-- rows from a definition
select t.id, r.a, r.n from t, rows from (jsonb_to_record(t.j) as (a jsonb, b int), generate_series(1, 2)) as r(a, b, n);

-- using with an alias
select q.k, t.id from t join u using (k) as q;

-- full join using with an alias
select q.k, t.id, u.y from t full join u using (k) as q;

-- several sets
select id, unnest(arr) as a, generate_series(1, 2) as b from t;

-- several sets in expressions
select id, unnest(arr) + generate_series(1, x) as a, x from t;

-- several sets in order
select id, unnest(arr) as a, generate_series(1, 2) as b from t order by id limit 4;

-- subquery in a function of from
select g from generate_series(1, (select max(y) from u)) g;

-- subquery in a function of from, joined
select t.id, g from t, generate_series(t.k, (select max(y) from u)) g;

-- subquery in a function of from, correlated
select t.id, g from t, generate_series(1, (select count(*)::int from u where u.k = t.k)) g;

-- subquery as a condition
select id from t where (select bool_or(u.b) from u where u.k = t.k);

-- subquery as a key
select (select max(u.y) from u where u.k = t.k) as m, count(*) from t group by 1;

-- subquery as a key, in an expression
select (select max(u.y) from u where u.k = t.k) + 1 as m, count(*) from t group by (select max(u.y) from u where u.k = t.k);

-- limit by arithmetic
select id from t order by id limit 1 + 2 * 1 offset 3 - 2;

-- only a table without children
select id from only t;
