"""What `pooler_compatibility_mode` means for a stream table: no prepared statements, and no alerts."""

from __future__ import annotations

import json

import pytest

from pgtrickle.catalog.alerts import CHANNELS
from pgtrickle.commands.refresh import refresh
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.poolers import new_pooler

QUERY = "select customer, sum(amount) as total from orders group by customer"


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)", rows=[(i, i % 3, i) for i in range(9)]
    )


@pytest.fixture
def direct(database, spark):
    """An engine that reaches the server straight, also where others go through a pooler."""
    engine = Engine(database.dsn(TRICKLE), lambda: spark)
    yield engine
    engine._spark = None
    engine.close()


def _create(app, name, **options):
    given = "".join(f", {option} => {value}" for option, value in options.items())
    app.execute(f"select pgtrickle.create_stream_table('{name}', '{QUERY}', schedule => null{given})")


def _kept(engine) -> set[str]:
    """Statements that are prepared on the connections that a refresh would use."""
    with engine.pool.connections(2) as opened:
        rows = [
            row[0] for one in opened for row in one.execute("select statement from pg_prepared_statements")
        ]
    return set(rows)


def _follow(engine, orders, name, times=4):
    for _ in range(times):
        orders.change("insert into orders select max(id) + 1, 1, 1 from orders")
        refresh(engine, name)


def test_a_straight_engine_keeps_statements_prepared_and_the_table_stays_right(orders, app, direct):
    _create(app, "totals")
    _follow(direct, orders, "totals")
    assert any("pgt_refresh_history" in text for text in _kept(direct))
    assert (
        app.execute("select sum(total) from totals").fetchone()
        == app.execute("select sum(amount) from orders").fetchone()
    )


def test_a_compatible_table_prepares_nothing(orders, app, direct):
    _create(app, "totals", pooler_compatibility_mode=True)
    _follow(direct, orders, "totals")
    assert _kept(direct) == set()
    app.execute("select pgtrickle.alter_stream_table('totals', pooler_compatibility_mode => false)")
    _follow(direct, orders, "totals")
    assert _kept(direct) != set()


def test_through_a_pooler_nothing_is_prepared_whatever_the_table_says(orders, app, database, spark):
    _create(app, "totals")
    with new_pooler(database.server, (TRICKLE, APP)) as pooler:
        engine = Engine(pooler.dsn(database.name, TRICKLE), lambda: spark)
        _follow(engine, orders, "totals")
        assert _kept(engine) == set()
        engine._spark = None
        engine.close()


def test_a_kept_statement_that_no_longer_fits_does_not_fail_a_refresh(orders, app, connection, direct):
    _create(app, "totals")
    _follow(direct, orders, "totals")
    assert any("ground_state" in text for text in _kept(direct))
    # what a statement of each refresh returns has another type from now on
    connection.execute("alter function pgtrickle_internal.ground_state rename to ground_state_before")
    connection.execute(
        "create function pgtrickle_internal.ground_state(ids bigint[]) returns table (is_moved boolean,"
        " code text)"
        " language sql as 'select is_moved, code::text from pgtrickle_internal.ground_state_before(ids)'"
    )
    connection.commit()
    _follow(direct, orders, "totals", times=1)
    assert (
        app.execute("select sum(total) from totals").fetchone()
        == app.execute("select sum(amount) from orders").fetchone()
    )


def test_refreshes_are_told_on_both_channels_unless_the_table_is_compatible(orders, app, database, direct):
    _create(app, "quiet", pooler_compatibility_mode=True)
    _create(app, "loud")
    with database.connect(APP, autocommit=True) as listener:
        for channel in CHANNELS:
            listener.execute(f"listen {channel}")
        for name in ("quiet", "loud"):
            refresh(direct, name)
        heard = list(listener.notifies(timeout=90, stop_after=2))
        assert [one.channel for one in heard] == list(CHANNELS)
        told = json.loads(heard[0].payload)
        assert told.pop("at")
        assert told.pop("milliseconds") > 0
        assert told == {
            "event": "refresh_completed",
            "pgt_id": 2,
            "stream_table": "public.loud",
            "action": "REINITIALIZE",
            "rows_inserted": 3,
            "rows_deleted": 0,
            "reason": "first load",
        }


def test_a_failure_is_told_without_the_values_that_it_is_about(orders, app, database, direct):
    app.execute(
        "select pgtrickle.create_stream_table('shares', schedule => null,"
        " query => 'select id, (''secret '' || id)::int as n from orders')"
    )
    with database.connect(APP, autocommit=True) as listener:
        listener.execute(f"listen {CHANNELS[0]}")
        with pytest.raises(PgTrickleError, match="secret"):
            refresh(direct, "shares")
        (heard,) = listener.notifies(timeout=90, stop_after=1)
    told = json.loads(heard.payload)
    assert (told["event"], told["stream_table"], told["sqlstate"]) == (
        "refresh_failed",
        "public.shares",
        "22P02",
    )
    assert "secret" not in heard.payload
