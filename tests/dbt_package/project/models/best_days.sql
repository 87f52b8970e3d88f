{{ config(schema='marts') }}
select placed, amount from {{ ref('daily_sales') }} order by amount desc, placed limit 3
