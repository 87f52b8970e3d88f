-- arena: the tables, types, views and functions that random DDL alters.
-- Run as the superuser with search_path = arena. Functions stay with the superuser, whom pgtrickle trusts;
-- everything else belongs to `app`.

create type mood as enum ('sad', 'ok', 'happy');
create type pair as (a int, b text);
create domain small as int check (value < 1000);

create table orders (
    id int primary key, customer int, amount int, note text, feeling mood, size small not null default 1, at_pair pair
);
create table customers (id int primary key, name varchar(20), region text);
create table events (id int, kind int, label text) partition by list (kind);
create table events_0 partition of events for values in (0);
create table events_1 partition of events for values in (1, 2);
create table events_rest partition of events default;
create table loose (id int, kind int, label text);
create table parents (id int, label text);
create table children (extra int) inherits (parents);
create table later (id int, label text);

create function doubled(n int) returns int language sql immutable as 'select n * 2';
create function scaled(n int) returns int language sql immutable as 'select arena.doubled(n) + 1';
create function worded(n int) returns text language plpgsql immutable as $$ begin return 'n' || n; end $$;
create function mood_text(m mood) returns text language plpgsql immutable as $$ begin return 'mood'; end $$;

create view big_orders as select id, customer, amount from orders where amount > 3;
create materialized view regions as select region, count(*) as people from customers group by region;

insert into customers select n, 'name ' || n, 'region ' || n % 2 from generate_series(1, 4) n;
insert into orders select n, n % 4 + 1, n, 'note ' || n % 3, (array['sad', 'ok', 'happy'])[n % 3 + 1]::mood, n, (n, 'b')::pair
from generate_series(1, 8) n;
insert into events select n, n % 4, 'label ' || n from generate_series(1, 8) n;
insert into loose values (100, 5, 'loose');
insert into parents select n, 'parent ' || n from generate_series(1, 3) n;
insert into children select n, 'child ' || n, n from generate_series(4, 6) n;
insert into later values (7, 'later');
refresh materialized view regions;
