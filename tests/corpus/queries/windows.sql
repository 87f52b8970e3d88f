-- row_number
select id, row_number() over (order by id) as n from people;

-- rank and dense_rank
select id, rank() over (partition by team order by pay) as a, dense_rank() over (partition by team order by
pay) as b from people;

-- percent_rank and cume_dist
select id, percent_rank() over (order by pay) as a, cume_dist() over (order by pay) as b from people;

-- ntile
select id, ntile(3) over (order by id) as a from people;

-- lag and lead
select id, lag(pay) over (partition by team order by id) as a, lead(pay, 2, 0) over (partition by team order
by id) as b from people;

-- first and last value
select id, first_value(name) over (partition by team order by id) as a, last_value(name) over (partition by
team order by id) as b, nth_value(name, 2) over (partition by team order by id) as c from people;

-- running sum
select id, sum(pay) over (order by id) as a from people;

-- sum of a partition
select id, sum(pay) over (partition by team) as a, pay / sum(pay) over (partition by team) as b from people;

-- sliding average of integers
select id, avg(amount) over (partition by person order by id rows between 2 preceding and current row) as a
from events;

-- sliding average of numerics
select id, avg(pay) over (order by id rows between 1 preceding and 1 following) as a from people;

-- sliding average of unlimited numerics
select id, avg(budget) over (order by id rows between 1 preceding and 1 following) as a from teams;

-- sliding sum
select id, sum(pay) over (order by id rows between 1 preceding and 1 following) as a from people;

-- sliding average as text
select id, (avg(pay) over (order by id rows between 1 preceding and 1 following))::text as a from people;

-- range frame
select id, sum(amount) over (order by at, id range between unbounded preceding and current row) as a from
events;

-- range frame by interval
select id, count(*) over (order by at range between interval '1 hour' preceding and interval '1 hour'
following) as a from events;

-- range frame by number
select id, sum(pay) over (order by id range between 2 preceding and 2 following) as a from people;

-- groups frame
select id, count(*) over (order by team groups between 1 preceding and 1 following) as a from people;

-- frame exclude current row
select id, sum(id) over (order by id rows between 2 preceding and 2 following exclude current row) as a from
people;

-- frame exclude ties
select id, count(*) over (order by team range between unbounded preceding and unbounded following exclude
ties) as a from people;

-- frame exclude group
select id, count(*) over (order by team groups between 1 preceding and 1 following exclude group) as a from
people;

-- frame from following
select id, count(*) over (order by id rows between 1 following and 3 following) as a from people;

-- named window
select id, sum(pay) over w as a, count(*) over w as b from people window w as (partition by team order by id);

-- named window extended
select id, sum(pay) over (w order by id) as a from people window w as (partition by team);

-- two windows
select id, row_number() over (order by pay, id) as a, row_number() over (order by name, id) as b from people;

-- window over groups
select team, sum(pay) as total, rank() over (order by sum(pay) desc nulls last, team) as r from people group
by team;

-- window of an aggregate
select team, sum(count(*)) over (order by team) as n from people group by team;

-- window with filter
select id, count(*) filter (where active) over (partition by team order by id) as a from people;

-- window with distinct rows
select distinct team, count(*) over (partition by team) as n from people;

-- window in a subquery with filter
select id from (select id, row_number() over (partition by team order by pay desc nulls last, id) as n from
people) q where n = 1;

-- window in order by
select id from people order by row_number() over (order by name, id) limit 5;

-- window over a join
select p.id, rank() over (partition by t.title order by p.pay, p.id) as r from people p join teams t on t.id =
p.team;

-- window with a case
select id, case when row_number() over (partition by team order by id) = 1 then name end as first from people;

-- window string_agg
select id, string_agg(name, ',') over (partition by team order by id) as a from people;

-- window array_agg
select id, array_agg(id) over (partition by team order by id) as a from people;

-- window min and max
select id, min(pay) over (partition by team) as a, max(born) over (partition by team order by id) as b from
people;

-- window bool_and
select id, bool_and(active) over (partition by team order by id) as a from people;

-- window by expression
select id, count(*) over (partition by id % 3 order by lower(name), id) as a from people;

-- window desc nulls first
select id, row_number() over (order by pay desc nulls first, id) as a from people;

-- window of lag difference
select id, at - lag(at) over (partition by person order by at, id) as gap from events;

-- window ratio
select id, round(pay / nullif(max(pay) over (partition by team), 0), 2) as r from people;

-- window of a window by subquery
select id, sum(d) over (order by id) as s from (select id, amount - lag(amount, 1, 0) over (order by id) as d
from events) q;

-- sessions by gap
with marked as (select id, person, at, case when at - lag(at) over (partition by person order by at, id) <=
interval '2 hours' then 0 else 1 end as starts from events), numbered as (select id, person, at, sum(starts)
over (partition by person order by at, id) as session from marked) select person, session, count(*) as n,
min(at) as first, max(at) as last from numbered group by person, session;

-- sessions in subqueries
select person, session, max(at) - min(at) as length, count(*) as n from (select person, at, count(*) filter
(where starts) over (partition by person order by at, id rows unbounded preceding) as session from (select id,
person, at, coalesce(at > lag(at) over (partition by person order by at, id) + interval '90 minutes', true) as
starts from events) a) b group by person, session;

-- sessions with a named window
select person, session, count(*) from (select person, sum(is_new::int) over w as session from (select id,
person, at, lag(at) over w is null or at - lag(at) over w > interval '1 hour' as is_new from events window w
as (partition by person order by at, id)) a window w as (partition by person order by at, id)) b group by
person, session;

-- islands of numbers
select min(id) as first, max(id) as last from (select id, id - row_number() over (order by id) as island from
people) q group by island;

-- top per group by lateral
select t.id, x.id as p from teams t cross join lateral (select id from people where team = t.id order by pay
desc nulls last, id limit 1) x;

-- median by window
select team, avg(pay) as median from (select team, pay, row_number() over (partition by team order by pay, id)
as n, count(*) over (partition by team) as c from people where pay is not null) q where n in ((c + 1) / 2, (c
+ 2) / 2) group by team;

-- window ignoring order
select id, count(*) over () as n, sum(pay) over () as s from people;

-- window of first value with filter in subquery
select id, first_value(id) over (partition by kind order by amount desc nulls last, id) as best from events
where amount > 5;

-- lead by default value
select id, lead(kind, 1, 'none') over (order by id) as next from events;

-- window of json
select id, jsonb_agg(amount) over (partition by kind order by id rows 2 preceding) as a from events;

-- window variance
select id, round(stddev_samp(amount) over (partition by kind order by id rows 3 preceding), 3) as a from
events;

-- window over union
select x, count(*) over (partition by x) as n from (select id as x from teams union all select id from people)
q;

-- window over distinct
select team, row_number() over (order by team) as n from (select distinct team from people) q;

-- ratio to report
select region, sum(amount) as a, round(sum(amount) / sum(sum(amount)) over (), 3) as share from sales group by
region;
