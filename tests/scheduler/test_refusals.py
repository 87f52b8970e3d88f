"""A refresh that is refused before it begins is in the history with its error, and counts as a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

import psycopg
import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.policy.units import Unit
from pgtrickle.scheduler.service.unit_refresh import refresh_unit
from pgtrickle.scheduler.service.vitals import Vitals
from tests.fixtures.databases import APP, Database

pytestmark = pytest.mark.every_postgres


def no_spark() -> NoReturn:
    raise AssertionError("a refusal needs no Spark")


@pytest.fixture
def attempt(database: Database) -> Iterator[Callable[[], None]]:
    """Refresh the stream table `s` as a worker of the sidecar does."""
    engine = Engine(database.dsn(), no_spark, max_connections=8)

    def refresh() -> None:
        with engine.connection() as connection:
            unit = Unit((find(connection, "public.s").id,))
        refresh_unit(engine, unit, "scheduler", lambda _: None, Vitals(), 3)

    yield refresh
    engine.close()


def create(app: psycopg.Connection, query: str, mode: str = "FULL") -> None:
    app.execute("select pgtrickle.create_stream_table('s', %s, refresh_mode => %s)", (query, mode))


def failures(app: psycopg.Connection) -> list[str]:
    rows = app.execute(
        "select error_message from pgtrickle.get_refresh_history('s') where status = 'FAILED'"
        " order by refresh_id"
    )
    return [error for (error,) in rows]


def errors(app: psycopg.Connection) -> tuple[object, ...]:
    row = app.execute("select status, consecutive_errors from pgtrickle.pgt_status()").fetchone()
    assert row is not None
    return row


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, at timestamptz)", rows=[(1, "2025-01-01")])


def test_a_query_that_cannot_be_followed(orders, app, attempt):
    create(app, "select now() - at as age from orders", "DIFFERENTIAL")
    attempt()
    attempt()
    assert errors(app) == ("ERROR", 2)
    first, second = failures(app)
    assert first == second
    assert "now()" in first


def test_a_revoked_right(orders, app, admin, attempt):
    admin.execute("create table prices(id int primary key); grant select on prices to app")
    admin.execute("grant select, trigger on prices to trickle")
    create(app, "select id from prices")
    attempt()
    assert errors(app) == ("ACTIVE", 0)
    admin.execute(f"revoke select on prices from {APP}")
    attempt()
    assert errors(app) == ("ERROR", 1)
    (error,) = failures(app)
    assert "app may not select from public.prices" in error


def test_an_altered_source(orders, app, attempt):
    create(app, "select id, at from orders")
    attempt()
    app.execute("alter table orders drop column at")
    attempt()
    assert errors(app) == ("ERROR", 1)
    assert len(failures(app)) == 1


def test_a_success_resets_the_count(orders, app, admin, attempt):
    create(app, "select now() - at as age from orders", "DIFFERENTIAL")
    attempt()
    app.execute("select pgtrickle.alter_stream_table('s', refresh_mode => 'FULL')")
    app.execute("select pgtrickle.resume_stream_table('s')")
    attempt()
    assert errors(app) == ("ACTIVE", 0)


def test_a_suspended_stream_table_stays_suspended(orders, app, attempt):
    create(app, "select id, at from orders")
    attempt()
    app.execute("select pgtrickle.alter_stream_table('s', status => 'SUSPENDED')")
    app.execute("alter table orders drop column at")
    attempt()
    assert errors(app)[0] == "SUSPENDED"
