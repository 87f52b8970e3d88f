-- stream_tables: safe to run again.
select pgtrickle.create_stream_table_if_not_exists('revenue_by_region',
    'select c.region, count(*) as orders, sum(o.amount) as revenue
     from orders o join customers c on c.id = o.customer group by c.region');
select pgtrickle.create_stream_table_if_not_exists('best_customers',
    'select c.name, sum(o.amount) as revenue from orders o join customers c on c.id = o.customer
     group by c.id, c.name having sum(o.amount) > 1300', schedule => '5s');
