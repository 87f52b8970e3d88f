select region, customer, amount, rank() over (partition by region order by amount desc) as place
from (select region, customer, sum(amount) as amount from {{ ref('order_facts') }} group by region, customer) s
