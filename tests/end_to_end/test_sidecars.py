"""Sidecars that run: woken by a write, told of new definitions, several of them at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from pgtrickle.commands.status import sidecars, table_status
from pgtrickle.commands.verify import verify
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.settings import WORKER_POOL_SIZE
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service import loop
from pgtrickle.scheduler.service.budgeting import Budgeting
from tests.fixtures.databases import APP, TEMPLATE, TRICKLE, Database, create_database
from tests.fixtures.servers import new_server
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

SUMS = "select customer, sum(amount) as total from orders group by customer"


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)",
        rows=[(1, 1, 10), (2, 1, 5), (3, 2, 7), (4, None, 1)],
    )


def created(app, name: str, query: str, schedule: str = "calculated") -> None:
    app.execute("select pgtrickle.create_stream_table(%s, %s, %s)", (name, query, schedule))


@pytest.fixture
def listened(pg_version, templates) -> Iterator[Database]:
    """A database of a server that has no commits in two phases, as is the default of PostgreSQL."""
    with new_server(pg_version, max_prepared_transactions="0") as server:
        templates.ensure(server)
        yield create_database(server, "listened", TEMPLATE)


def armed(connection):
    """How many advisory locks say that somebody wants to be woken."""
    row = connection.execute(
        "select count(*) from pg_locks where locktype = 'advisory' and classid ="
        " pgtrickle_internal.wake_lock()::oid"
        " and mode = 'ExclusiveLock' and granted"
    ).fetchone()
    return row[0]


@pytest.mark.light
def test_a_write_to_a_source_at_rest_wakes_the_sidecar(listened, spark, monkeypatch):
    engine = Engine(listened.dsn(TRICKLE), lambda: spark)
    with listened.connect(SUPERUSER, autocommit=True) as admin, listened.connect(APP, autocommit=True) as app:
        app.execute("create table orders(id int primary key, customer int, amount int)")
        app.execute("grant select, trigger on orders to trickle")
        created(app, "sums", SUMS)
        with running(engine) as sidecar:
            eventually(lambda: sidecar.has_refreshed("sums", Action.REINITIALIZE))
            eventually(lambda: armed(admin) == 1)
            # from here on nothing but a wake-up can bring a look
            monkeypatch.setattr(loop, "POLL_SECONDS", 300.0)
            sidecar.looks_again(1)
            app.execute("insert into orders values (5, 2, 1)")
            eventually(lambda: sidecar.has_refreshed("sums", Action.DIFFERENTIAL))
            eventually(lambda: armed(admin) == 0)
        assert not sidecar.errors()
    engine._spark = None
    engine.close()


def test_nobody_is_asked_for_a_wake_up_where_commits_have_two_phases(orders, app, admin, engine, dsn):
    created(app, "sums", SUMS)
    with running(engine, listen_dsn=dsn) as sidecar:
        eventually(lambda: sidecar.has_refreshed("sums", Action.REINITIALIZE))
        sidecar.looks_again(20)
        assert armed(admin) == 0
        with app.transaction():
            app.execute("insert into orders values (5, 2, 1)")
            app.execute("prepare transaction 'later'")
        app.execute("commit prepared 'later'")
        eventually(lambda: sidecar.has_refreshed("sums", Action.DIFFERENTIAL))
    assert not sidecar.errors()


@pytest.mark.light
def test_stream_tables_created_altered_and_dropped_under_a_running_sidecar(orders, app, engine):
    with running(engine) as sidecar:
        created(app, "sums", SUMS)
        created(app, "top", "select max(total) as most from sums")
        eventually(lambda: sidecar.has_refreshed("top", Action.REINITIALIZE))
        orders.change("insert into orders values (5, 2, 100)")
        eventually(lambda: sidecar.has_refreshed("top", Action.DIFFERENTIAL))
        app.execute(
            "select pgtrickle.alter_stream_table('top', query => 'select min(total) as most from sums')"
        )
        eventually(lambda: app.execute("select most from top").fetchone() == (1,))
        app.execute("select pgtrickle.drop_stream_table('top')")
        orders.change("insert into orders values (6, 3, 1)")
        eventually(lambda: app.execute("select count(*) from sums").fetchone() == (4,))
    assert not sidecar.errors()
    assert len(verify(engine, None)) == 1


@pytest.mark.parametrize("size", [0, 3])
def test_any_number_of_workers_keeps_everything_fresh(orders, source, app, engine, size):
    people = source("people(id int primary key, name text)", rows=[(1, "a"), (2, "b")])
    created(app, "sums", SUMS)
    created(app, "named", "select p.name, s.total from people p join sums s on s.customer = p.id", "500ms")
    created(app, "counted", "select count(*) as n from people")
    with running(engine, worker_pool_size=size) as sidecar:
        eventually(lambda: sidecar.has_refreshed("named"))
        for number in range(5, 15):
            orders.change(f"insert into orders values ({number}, 2, {number})")
            people.change(f"insert into people values ({number}, 'x')")
        total = 7 + sum(range(5, 15))
        expected = [("a", 15), ("b", total)]
        eventually(lambda: app.execute("select name, total from named order by 1").fetchall() == expected)
        eventually(lambda: app.execute("select n from counted").fetchall() == [(12,)])
    assert not sidecar.errors()
    assert len(verify(engine, None)) == 3


@pytest.mark.light
def test_two_sidecars_share_the_work_and_double_nothing(orders, app, engine, database, spark):
    created(app, "sums", SUMS)
    created(app, "seen", "select id, amount from orders")
    other = Engine(engine.dsn, lambda: spark)
    try:
        with running(engine) as first, running(other) as second:
            eventually(lambda: len([s for s in sidecars(database.dsn(TRICKLE)) if s.is_alive]) == 2)
            for number in range(5, 25):
                orders.change(
                    f"insert into orders values ({number}, 2, 1)", "delete from orders where id = 1"
                )
            eventually(lambda: app.execute("select count(*) from seen").fetchone() == (23,))
            eventually(lambda: app.execute("select total from sums where customer = 2").fetchone() == (27,))
            status = app.execute(
                "select sidecars, quota from pgtrickle.worker_allocation_status()"
            ).fetchone()
        assert status == (2, 2 * WORKER_POOL_SIZE.default)
        assert not first.errors()
        assert not second.errors()
        assert len(verify(engine, None)) == 2
        assert sidecars(database.dsn(TRICKLE)) == []
    finally:
        other._spark = None
        other.close()


@pytest.mark.slow
def test_a_constant_stream_is_followed_at_a_pace_that_keeps_the_share(orders, app, engine, dsn):
    created(app, "sums", SUMS)
    created(app, "timed", "select count(*) as n from orders", "500ms")
    budget = Budgeting.of(engine.supply, 0.05)
    with running(engine, budget=budget) as sidecar, writing(orders, "update orders set amount = amount + 1"):
        eventually(lambda: (table_status(dsn, "sums").waits or "").startswith("paced: "), seconds=60)
        # what has a schedule of its own keeps it, and a request is answered
        before = table_status(dsn, "timed").last_refresh_at
        eventually(lambda: table_status(dsn, "timed").last_refresh_at != before)
        assert not (table_status(dsn, "timed").waits or "").startswith("paced: ")
        app.execute("call pgtrickle.refresh_and_wait('sums', '30 s')")
        (found,) = sidecars(dsn)
        assert found.vitals["cpu_share"] == 0.05
    with running(engine, budget=budget) as sidecar:
        # nobody writes any more, so nothing is held back
        eventually(lambda: sidecar.loop.current is not None and not sidecar.loop.current.behind(), seconds=60)
    assert len(verify(engine, None)) == 2


@contextmanager
def writing(table, statement: str) -> Iterator[None]:
    """Somebody runs the statement again and again, in transactions of their own."""
    done = threading.Event()

    def write() -> None:
        with psycopg.connect(table.connection.info.dsn, password=table.connection.info.password) as other:
            other.autocommit = True
            while not done.wait(0.02):
                other.execute(statement)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()
