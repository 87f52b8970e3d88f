-- a comment with a quote ' and a dollar $$
select placed, count(*) as orders, sum(amount) as amount from {{ ref('order_facts') }} group by placed
