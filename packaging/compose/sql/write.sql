-- write: what the application does once a second.
insert into orders (customer, amount)
select 1 + floor(random() * 200)::integer, 5 + round((random() * 95)::numeric, 2) from generate_series(1, 5);
update orders set amount = amount + 1 where id = (select max(id) from orders);
delete from orders where id = (select min(id) from orders);
