-- count star
select count(*) from people;

-- counts
select count(*) as a, count(team) as b, count(distinct team) as c from people;

-- sum avg min max
select team, sum(pay) as a, avg(pay) as b, min(pay) as c, max(pay) as d from people group by team;

-- sums of integers
select subject, sum(score) as a, avg(score) as b, min(score) as c, max(score) as d from marks group by subject;

-- sums of floats
select subject, sum(weight) as a, avg(weight) as b, min(weight) as c, max(part) as d from marks group by
subject;

-- sums of intervals
select kind, sum(took) as a, avg(took) as b, max(took) as c from events group by kind;

-- sums of money
select small, sum(price) as a, max(price) as b from things group by small;

-- min and max of texts
select team, min(name) as a, max(name) as b from people group by team;

-- min and max of dates
select team, min(born) as a, max(seen) as b from people group by team;

-- min and max of arrays
select small, min(grid) as a, max(grid) as b from things group by small;

-- min and max of enums
select parent, min(colour) as a, max(colour) as b from teams group by parent;

-- min of addresses
select small, min(addr) as a, max(addr) as b from things group by small;

-- boolean aggregates
select team, bool_and(active) as a, bool_or(active) as b, every(pay > 10) as c from people group by team;

-- bit aggregates
select team, bit_and(id) as a, bit_or(id) as b, bit_xor(id) as c from people group by team;

-- variance
select subject, variance(score) as a, var_pop(score) as b, stddev(score) as c, stddev_pop(score) as d from
marks group by subject;

-- correlation
select subject, corr(score, weight) as a, covar_pop(score, weight) as b, regr_count(score, weight) as c,
regr_slope(score, weight) as d from marks group by subject;

-- regression
select subject, regr_avgx(score, weight) as a, regr_intercept(score, weight) as b, regr_r2(score, weight) as
c, regr_sxx(score, weight) as d, covar_samp(score, weight) as e from marks group by subject;

-- string_agg
select team, string_agg(name, ',' order by id) as a from people group by team;

-- string_agg distinct
select team, string_agg(distinct code, ',' order by code) as a from people group by team;

-- array_agg
select team, array_agg(id order by id desc) as a from people group by team;

-- array_agg distinct
select team, array_agg(distinct code) as a from people group by team;

-- array_agg of arrays
select small, array_agg(grid order by id) as a from things group by small;

-- array_agg without order
select team, array_agg(id) as a from people group by team;

-- any_value
select team, any_value(team) as a from people group by team;

-- filter
select team, count(*) filter (where active) as a, sum(pay) filter (where pay > 20) as b from people group by
team;

-- filter with a subquery
select team, count(*) filter (where team in (select id from teams)) as a from people group by team;

-- distinct aggregates
select team, sum(distinct pay) as a, avg(distinct pay) as b, count(distinct code) as c from people group by
team;

-- several arguments distinct
select team, count(distinct (code, active)) as a from people group by team;

-- ordered aggregates
select team, array_agg(name order by pay desc nulls last, id) as a from people group by team;

-- percentile_cont
select subject, percentile_cont(0.5) within group (order by score) as a from marks group by subject;

-- percentile_disc
select subject, percentile_disc(0.25) within group (order by score) as a, percentile_disc(array[0.1, 0.9])
within group (order by score) as b from marks group by subject;

-- mode
select team, mode() within group (order by code) as a from people group by team;

-- hypothetical rank
select subject, rank(2) within group (order by score) as a, dense_rank(2) within group (order by score) as b,
percent_rank(2) within group (order by score) as c, cume_dist(2) within group (order by score) as d from marks
group by subject;

-- within group with filter
select subject, percentile_disc(0.5) within group (order by score) filter (where score > 0) as a from marks
group by subject;

-- user aggregate
select team, product(id % 5 + 1) as a from people group by team;

-- text aggregate of numbers
select subject, string_agg(score::text, '' order by score) as a from marks group by subject;

-- group by nothing
select sum(pay) as a from people having count(*) > 5;

-- group by with no rows
select count(*), sum(pay), max(name) from people where false;

-- having
select team, count(*) as n from people group by team having count(*) > 2 and max(pay) > 20;

-- having without aggregates
select team from people group by team having team > 2;

-- having with a subquery
select team, sum(pay) as a from people group by team having sum(pay) > (select avg(pay) from people);

-- group by position
select team, active, count(*) from people group by 1, 2;

-- group by key with dependent columns
select t.id, t.title, t.budget, count(p.id) as n from teams t left join people p on p.team = t.id group by
t.id;

-- group by several
select team, active, code, count(*) as n from people group by team, active, code;

-- group by constant
select 'all' as who, count(*) as n from people group by 1;

-- rollup
select team, active, count(*) as n, grouping(team, active) as g from people group by rollup (team, active);

-- cube
select team, code, sum(pay) as a from people group by cube (team, code);

-- grouping sets
select team, code, count(*) as n from people group by grouping sets ((team), (code), ());

-- grouping sets with key
select active, team, code, count(*) from people group by active, grouping sets ((team), (code));

-- grouping sets with having
select team, code, count(*) as n from people group by grouping sets ((team), (code)) having count(*) > 2;

-- group by distinct
select team, code, count(*) from people group by distinct rollup (team, code), rollup (team);

-- grouping in order
select team, count(*) as n from people group by rollup (team) order by grouping(team), team limit 4;

-- nested aggregates by subquery
select max(n) from (select count(*) as n from people group by team) q;

-- aggregate of an aggregate
select avg(total) as a from (select sum(pay) as total from people group by team) q;

-- aggregate of a join
select t.title, count(*) as n, sum(e.amount) as a from teams t join people p on p.team = t.id join events e on
e.person = p.id group by t.title;

-- aggregate of a left join
select t.id, count(p.id) as n, coalesce(sum(p.pay), 0) as a from teams t left join people p on p.team = t.id
group by t.id;

-- aggregate of expressions
select team, sum(pay * 2 + 1) as a, sum(case when active then 1 else 0 end) as b, max(length(name)) as c from
people group by team;

-- expressions of aggregates
select team, sum(pay) / count(*) as a, round(avg(pay), 1) as b, max(id) - min(id) as c from people group by
team;

-- aggregate order by aggregate
select team, sum(pay) as a from people group by team order by sum(pay) desc nulls last, team limit 3;

-- distinct groups
select distinct count(*) as n from people group by team;

-- count of a distinct subquery
select count(*) from (select distinct team, code from people) q;

-- json aggregates of groups
select active, jsonb_object_agg(team, n) as a from (select active, team, count(*) as n from people where team
is not null group by active, team) q group by active;

-- array_agg below a join
select t.id, q.ids from teams t join (select team, array_agg(id order by id) as ids from people group by team)
q on q.team = t.id;

-- array_agg without order below a join
select t.id, q.ids from teams t join (select team, array_agg(id) as ids from people group by team) q on q.team
= t.id;

-- array_agg of constant values below a join
select t.id, q.ids from teams t join (select team, array_agg(team) as ids from people group by team) q on
q.team = t.id;

-- array_agg distinct below a join
select t.id, q.codes from teams t join (select team, array_agg(distinct code) as codes from people group by
team) q on q.team = t.id;

-- string_agg below a filter
select * from (select team, string_agg(name, ',' order by name) as names from people group by team) q where
names like '%a%';

-- count of array_agg
select cardinality(a) as n, count(*) from (select array_agg(id order by id) as a from people group by team) q
group by 1;

-- sum of floats below a join
select t.id, q.w from teams t join (select person, sum(weight) as w from marks group by person) q on q.person
= t.id;

-- avg below a filter
select team from (select team, avg(pay) as m from people group by team) q where m > 25;

-- aggregate in case
select case when count(*) > 3 then 'many' else 'few' end as size, team from people group by team;

-- aggregate with coalesce
select coalesce(max(pay), -1) as a from people where team = 99;

-- aggregate over union
select sum(x) from (select id as x from teams union all select id from people) q;

-- aggregate over values
select sum(n) from (values (1), (2)) v(n);

-- count with a condition on null
select team, count(nullif(code, 'c1')) as a from people group by team;

-- group by array
select tags, count(*) from people group by tags;

-- group by jsonb
select info -> 'c' as c, count(*) from people group by info -> 'c';

-- group by range
select span, count(*) from things group by span;

-- group by uuid and inet
select uid, network(addr) as n, count(*) from things group by uid, network(addr);

-- group by interval
select took, count(*) from events group by took;

-- group by date_trunc
select date_trunc('day', at) as d, kind, sum(amount) as a from events group by 1, 2;

-- group by case
select case when pay > 30 then 'a' else 'b' end as k, count(*) from people group by 1;

-- group by float
select weight, count(*) from marks group by weight;

-- group by boolean
select active, count(*) from people group by active;

-- min by array
select team, (array_agg(name order by pay, id))[1] as cheapest from people group by team;

-- max of rows
select team, max(row(pay, id)::text) as a from people group by team;

-- tsvector aggregate of words
select small, count(distinct words) as n from things group by small;

-- multirange aggregate
select small, range_agg(spans) as a from things group by small;
