"""A sidecar honours cron, gates, tiers and draining."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pgtrickle.commands.run import run
from pgtrickle.scheduler.service.loop import Loop
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually


@contextmanager
def running(engine) -> Iterator[None]:
    """A sidecar in a thread."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(engine, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(90)
        assert not thread.is_alive()


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(1, 10)])


def created(app, name: str, schedule: str | None = "calculated") -> None:
    app.execute(
        "select pgtrickle.create_stream_table(%s, 'select sum(amount) as total from orders', %s)",
        (name, schedule),
    )


def total(app, name: str) -> int | None:
    row = app.execute(f"select total from {name}").fetchone()
    return row[0] if row else None


@pytest.mark.light
def test_a_gated_source_holds_back_its_readers_until_the_gate_opens(orders, source, app, engine):
    others = source("others(id int primary key)", rows=[(1,)])
    created(app, "held")
    app.execute("select pgtrickle.create_stream_table('free', 'select count(*) as total from others')")
    with running(engine):
        eventually(lambda: (total(app, "held"), total(app, "free")) == (10, 1))
        app.execute("select pgtrickle.gate_source('orders')")
        orders.change("insert into orders values (2, 5)")
        # once a later change of another source was followed, the gated one was passed over
        others.change("insert into others values (2)")
        eventually(lambda: total(app, "free") == 2)
        assert total(app, "held") == 10
        app.execute("select pgtrickle.ungate_source('orders')")
        eventually(lambda: total(app, "held") == 15)


@pytest.mark.light
def test_a_drained_database_is_left_alone_until_it_is_undrained(orders, app, admin, engine, connect):
    created(app, "drained")
    keeper = connect(TRICKLE)
    keeper.autocommit = True
    with running(engine):
        eventually(lambda: total(app, "drained") == 10)
        assert keeper.execute("select pgtrickle.drain(60)").fetchone() == (True,)
        orders.change("insert into orders values (2, 5)")
    # a sidecar that starts now honours it too: it looks again and again, and does nothing
    with running(engine):
        for _ in range(3):
            _has_looked(admin)
        assert keeper.execute("select pgtrickle.is_drained()").fetchone() == (True,)
        assert total(app, "drained") == 10
        keeper.execute("select pgtrickle.undrain()")
        eventually(lambda: total(app, "drained") == 15)


def _has_looked(admin) -> None:
    """Wait until the sidecar has asked the database something."""
    looks = (
        "select max(query_start) from pg_stat_activity where datname = current_database()"
        " and application_name like 'pgtrickle%'"
    )
    before = admin.execute(looks).fetchone()
    eventually(lambda: admin.execute(looks).fetchone() != before)


@pytest.mark.light
def test_cron_is_kept_and_a_frozen_table_is_refreshed_only_when_asked(orders, app, engine):
    created(app, "clocked", "* * * * * *")
    created(app, "rare", "0 0 1 1 *")
    created(app, "frozen")
    with running(engine):
        eventually(lambda: [total(app, t) for t in ("clocked", "rare", "frozen")] == [10, 10, 10])
        app.execute("select pgtrickle.alter_stream_table('frozen', tier => 'frozen')")
        orders.change("insert into orders values (2, 5)")
        eventually(lambda: total(app, "clocked") == 15)
        assert [total(app, "rare"), total(app, "frozen")] == [10, 10]
        app.execute("select pgtrickle.refresh_stream_table('frozen')")
        assert [total(app, "rare"), total(app, "frozen")] == [10, 15]


def test_a_look_that_sees_a_table_frozen_and_a_change_after_it_leaves_the_table_alone(orders, app, engine):
    created(app, "free")
    created(app, "frozen")
    with Loop(engine, lambda event: None).dispatcher() as dispatcher:

        def turned() -> list[int | None]:
            dispatcher.tick()
            return [total(app, "free"), total(app, "frozen")]

        eventually(lambda: turned() == [10, 10] and dispatcher.is_idle())
        app.execute("select pgtrickle.alter_stream_table('frozen', tier => 'frozen')")
        orders.change("insert into orders values (2, 5)")
        eventually(lambda: turned()[0] == 15 and dispatcher.is_idle())
        assert turned() == [15, 10]
