-- shop: two tables, and what the sidecar's role needs to follow them.
set role app;
create table customers (id integer primary key, name text not null, region text not null);
create table orders (
    id bigint generated always as identity primary key,
    customer integer not null references customers,
    amount numeric(12, 2) not null,
    placed_at timestamptz not null default now()
);
create index on orders (customer);
grant select, trigger on customers, orders to trickle;
insert into customers
select n, 'customer ' || n, (array['north', 'south', 'east', 'west'])[1 + n % 4] from generate_series(1, 200) n;
insert into orders (customer, amount)
select 1 + n % 200, 5 + n % 95 from generate_series(1, 5000) n;
reset role;
