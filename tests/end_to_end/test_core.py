"""Stream tables follow their sources through several conflicting changes in one window."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action

ORDERS = "orders(id int primary key, customer int, region text, amount numeric(12,2), placed timestamptz)"
CUSTOMERS = "customers(id int primary key, name text, region text)"


@pytest.fixture
def shop(source):
    orders = source(
        ORDERS,
        rows=[
            (1, 1, "north", "10.50", "2024-01-01"),
            (2, 1, "north", "5.25", "2024-01-02"),
            (3, 2, "south", None, "infinity"),
            (4, None, None, "7.00", None),
            (5, 3, "east", "0.10", "2024-02-01"),
        ],
    )
    source(CUSTOMERS, rows=[(1, "Ann", "n"), (2, "Bob", "s"), (3, "Cid", None)])
    return orders


CHANGES = (
    (
        "update orders set amount = amount + 1 where id <= 2",
        "delete from orders where id = 5",
        "insert into orders values (6, 2, 'south', 3.75, '2023-01-01'), (7, 3, null, 9, null)",
        "update customers set region = 'x' where id = 2",
        "delete from customers where id = 3",
    ),
    (
        "update orders set customer = 2, region = 'north' where id = 1",
        "delete from orders where id = 6",
        "insert into orders values (6, 1, 'east', 1, '2025-01-01')",
        "insert into customers values (3, 'Cid again', 'c')",
        "update orders set amount = null where id = 4",
    ),
    ("delete from orders", "insert into orders values (1, 1, 'north', 1, null)"),
    ("delete from orders",),
    ("insert into orders values (9, 2, 'west', 2, '2026-01-01')", "delete from customers where id = 1"),
)

QUERIES = {
    "filter": "select id, upper(region) as r, amount * 2 as twice from orders where amount > 5",
    "join": "select o.id, c.name, o.amount from orders o join customers c on c.id = o.customer",
    "join without key": "select c.region, o.amount from orders o join customers c on c.id = o.customer",
    "self join": "select a.id, b.id as other from orders a join orders b"
    " on a.customer = b.customer and a.id < b.id",
    "cross join": "select o.id, c.name from orders o, customers c",
    "non equi join": "select o.id, c.id as c from orders o join customers c on o.customer > c.id",
    "group": "select region, count(*) as n, sum(amount) as s, avg(amount) as a from orders group by region",
    "group over join": "select c.region, count(*) as n, sum(o.amount) as s, avg(o.amount) as a,"
    " min(o.placed) as first, max(o.amount) as top from orders o join customers c on c.id = o.customer"
    " group by c.region",
    "having": "select region, sum(amount) as s from orders group by region having count(*) > 1",
    "filtered": "select customer, count(*) filter (where amount > 5) as n, bool_and(amount > 1) as every,"
    " bool_or(region = 'north') as some from orders group by customer",
    "no group": "select count(*) as n, count(amount) as c, sum(amount) as s, max(placed) as m from orders",
    "distinct": "select distinct region, customer from orders",
    "count distinct": "select region, count(distinct customer) as n, sum(distinct amount) as s"
    " from orders group by region",
    "string_agg": "select region, string_agg(id::text, ',' order by id desc) as ids,"
    " array_agg(amount order by id) as all from orders group by region",
    "stddev": "select region, stddev(amount) as d, variance(amount) as v from orders group by region",
    "group by expression": "select date_trunc('year', placed) as y, count(*) as n from orders group by 1",
    "union all": "select id, region from orders union all select id, region from customers",
    "union": "select region from orders union select region from customers",
    "aggregate joined": "select c.name, t.n, t.s from customers c join (select customer, count(*) as n,"
    " sum(amount) as s from orders group by customer) t on t.customer = c.id",
    "distinct joined": "select c.name, d.region from customers c"
    " join (select distinct customer, region from orders) d on d.customer = c.id",
    "product across": "select c.name, sum(o.amount * c.id) as s from orders o"
    " join customers c on c.id = o.customer group by c.name",
}


@pytest.mark.light
@pytest.mark.every_postgres
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_stream_table_follows_conflicting_changes(shop, stream_table, query):
    table = stream_table(query, mode="DIFFERENTIAL")
    for statements in CHANGES:
        shop.change(*statements)
        outcome = table.refresh()
        assert outcome.action is Action.DIFFERENTIAL
        table.equals_its_query()
    assert table.refresh().action is Action.NO_DATA
    table.equals_its_query()
