select id, customer_id, placed, amount from {{ source('raw', 'orders') }} where status <> 'void'
