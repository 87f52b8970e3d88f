select r.region, r.amount, round(100 * r.amount / t.amount, 2) as percent
from {{ ref('region_sales') }} r cross join {{ ref('totals') }} t
