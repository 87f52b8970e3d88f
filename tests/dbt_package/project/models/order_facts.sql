select o.id, c.region, c.name as customer, o.placed, o.amount
from {{ ref('orders_clean') }} o join {{ ref('customers_clean') }} c on c.id = o.customer_id
