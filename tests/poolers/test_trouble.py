"""Sidecars behind a pooler that is too small for all, or is restarted under them, go on by themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from pgtrickle.commands.run import RefreshEvent, run
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.bags import assert_same_bag, difference
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.poolers import BYSTANDERS, crowd, new_pooler
from tests.fixtures.waiting import eventually

QUERIES = {
    "totals": "select customer, count(*) as n, sum(amount) as total from orders group by customer",
    "copies": "select customer, amount from orders",
}


@contextmanager
def sidecar(dsn: str, spark, **options) -> Iterator[list[RefreshEvent]]:
    """A sidecar in this process; the refreshes that it told of."""
    engine, stop = Engine(dsn, lambda: spark, **options), threading.Event()
    told: list[RefreshEvent] = []
    thread = threading.Thread(target=run, args=(engine, stop, told.append))
    thread.start()
    try:
        yield told
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join()
        # the Spark belongs to the run
        engine._spark = None
        engine.close()


def _refreshes(told) -> int:
    return sum(1 for event in told if event.outcome and event.outcome.action is Action.DIFFERENTIAL)


def _agree(app) -> bool:
    return not any(difference(app, f"table {name}", query) for name, query in QUERIES.items())


@pytest.fixture
def orders(source, app):
    orders = source(
        "orders(id int primary key, customer int, amount int)", rows=[(i, i % 3, i) for i in range(9)]
    )
    for name, query in QUERIES.items():
        app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))
    return orders


def test_a_pooler_restarted_under_a_running_sidecar_loses_nothing_and_doubles_nothing(
    orders, app, database, spark
):
    with (
        new_pooler(database.server, (TRICKLE, APP)) as pooler,
        sidecar(pooler.dsn(database.name, TRICKLE), spark) as told,
    ):
        eventually(lambda: _agree(app), seconds=120)
        for turn in range(3):
            before = _refreshes(told)
            orders.change(f"insert into orders select i, i % 3, i from generate_series({turn}01, {turn}50) i")
            eventually(lambda before=before: _refreshes(told) > before, seconds=120)  # type: ignore[misc]
            # in the middle of refreshes: there is more to follow
            orders.change("update orders set amount = amount + 1", "delete from orders where id % 7 = 1")
            pooler.stop()
            orders.change("update orders set amount = amount * 2 where id % 2 = 0")
            pooler.start()
            eventually(lambda: _agree(app), seconds=120)
    for name, query in QUERIES.items():
        assert_same_bag(app, f"table {name}", query)
    states = app.execute("select status, is_populated from pgtrickle.stream_tables_info").fetchall()
    assert states == [("ACTIVE", True)] * len(QUERIES)
    assert any(event.error is not None for event in told), "no restart was noticed"


def test_sidecars_share_a_pool_that_is_smaller_than_their_number_of_clients(
    orders, app, admin, database, spark
):
    size, most = 4, []
    with new_pooler(database.server, (TRICKLE, APP), size=size) as pooler:
        dsn = pooler.dsn(database.name, TRICKLE)
        with (
            crowd(dsn),
            sidecar(dsn, spark) as one,
            sidecar(dsn, spark) as two,
            sidecar(dsn, spark) as three,
        ):
            for turn in range(5):
                orders.change(
                    f"insert into orders select i, i % 3, i from generate_series({turn}01, {turn}50) i"
                )
                orders.change("update orders set amount = amount + 1 where id % 2 = 0")

                def agree() -> bool:
                    most.append(_connections(admin))
                    return _agree(app)

                eventually(agree, seconds=120)
            done = [_refreshes(told) for told in (one, two, three)]
    assert size < BYSTANDERS + 3
    assert 1 < max(most) <= size
    assert sum(done) >= 5
    for name, query in QUERIES.items():
        assert_same_bag(app, f"table {name}", query)


def _connections(admin: psycopg.Connection) -> int:
    row = admin.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and usename = %s",
        (TRICKLE,),
    ).fetchone()
    assert row is not None
    return int(row[0])
