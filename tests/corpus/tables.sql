-- The tables of the corpus: every kind of column and relation that its queries read.
create type shade as enum ('light', 'middle', 'dark');
create type spot as (x int, y int);
create sequence ticket;
create domain positive as int check (value > 0);

create table teams(
    id int primary key, title text, parent int, budget numeric, colour shade, opened date);

create table people(
    id int primary key, name text not null, team int, pay numeric(10,2), born date, tags text[], info jsonb,
    seen timestamptz, active boolean, code char(4));

create table events(
    id bigint primary key, person int, at timestamp not null, kind text, amount int, took interval, note json);

create table marks(person int, subject text, score int, weight double precision, part real);

create table things(
    id int primary key, place point, area box, span int4range, spans int4multirange, addr inet, bits bit(4), flags varbit,
    raw bytea, uid uuid, price money, words tsvector, corner spot, corners spot[], size positive, small smallint,
    days daterange, grid int[], link int, mac macaddr);

create table papers(id int primary key, body text, doc xml);

create table animals(id int, name text, legs int);
create table dogs(breed text) inherits (animals);

create table sales(id int, region text, sold date, amount numeric(12,2)) partition by list (region);
create table sales_north partition of sales for values in ('north');
create table sales_rest partition of sales default;

create view adults as select id, name, team, pay from people where born < date '2000-01-01';
create view team_pay(team, total, heads) as select team, sum(pay), count(*) from people group by team;

create function doubled(value int) returns int language sql immutable as 'select value * 2';
create function moved(place spot, by int) returns spot language sql immutable
    as 'select row(place.x + by, place.y + by)::public.spot';
create function letters(word text) returns setof text language sql immutable
    as $$ select regexp_split_to_table(word, '') $$;
create function corners(size int) returns setof spot language sql immutable
    as 'select n, n * n from generate_series(1, size) as n';
create function bounds(values_in int[], out lowest int, out highest int) language sql immutable
    as 'select min(v), max(v) from unnest(values_in) v';
create aggregate product(int) (sfunc = int4mul, stype = int, initcond = '1');
create operator ==> (leftarg = int, rightarg = int, function = int4le);
