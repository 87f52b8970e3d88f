select sum(amount) as amount, count(*) as orders from {{ ref('order_facts') }}
