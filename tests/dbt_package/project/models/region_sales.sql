select region, sum(amount) as amount from {{ ref('order_facts') }} group by region
