"""Stream tables over stream tables agree with one another at every moment."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from pgtrickle.model.stream_table import Action
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)",
        rows=[(1, 1, 10), (2, 1, 5), (3, 2, 7), (4, None, 1)],
    )


@pytest.mark.thorough
def test_a_chain_follows_from_the_bottom_to_the_top(orders, stream_table, engine):
    bottom = stream_table("select customer, sum(amount) as total from orders group by customer")
    middle = stream_table(f"select total, count(*) as n from {bottom.name} group by total")
    top = stream_table(f"select max(total) as most from {middle.name}")
    for statements in (
        ("update orders set amount = 17 where id = 3", "delete from orders where id = 4"),
        ("insert into orders values (5, 3, 17), (6, 3, null)", "update orders set customer = 3 where id = 1"),
        ("delete from orders",),
    ):
        orders.change(*statements)
        for table in (bottom, middle, top):
            table.refresh()
        for table in (bottom, middle, top):
            table.equals_its_query()


@pytest.mark.thorough
def test_a_diamond_never_shows_two_versions_of_its_source(orders, stream_table, engine):
    left = stream_table("select customer, sum(amount) as total from orders group by customer")
    right = stream_table("select customer, count(*) as n from orders group by customer")
    tip = stream_table(
        f"select l.customer, l.total, r.n, o.id from {left.name} l"
        f" join {right.name} r on l.customer = r.customer join orders o on o.customer = l.customer"
    )
    for statements in (
        ("insert into orders values (7, 2, 4)", "update orders set customer = 2 where id = 1"),
        ("delete from orders where customer = 2",),
        ("insert into orders values (8, 2, 4), (9, 1, 1)",),
    ):
        orders.change(*statements)
        assert refresh(engine, tip.name).action is Action.DIFFERENTIAL
        for table in (left, right, tip):
            table.equals_its_query()
    assert len(verify(engine, None)) == 3


@pytest.mark.light
def test_the_loop_keeps_everything_fresh(orders, stream_table, engine, app):
    names = [
        stream_table("select customer, sum(amount) as total from orders group by customer", loads=False).name,
        stream_table("select distinct customer from orders", loads=False).name,
    ]
    with app.transaction():
        app.execute(
            "select pgtrickle.create_stream_table('above', 'select sum(total) as t from stream_1', '1s')"
        )
        for name in names:
            app.execute("select pgtrickle.alter_stream_table(%s, schedule => 'calculated')", (name,))
    with running(engine) as sidecar:
        eventually(lambda: all(_is_populated(engine, name) for name in (*names, "above")))
        orders.change("insert into orders values (20, 5, 100)", "delete from orders where id = 1")
        eventually(lambda: sidecar.has_refreshed("above", Action.DIFFERENTIAL))
    assert not sidecar.errors()
    assert len(verify(engine, None)) == 3


def _is_populated(engine, name):
    with engine.connection() as connection:
        return find(connection, name).is_populated
