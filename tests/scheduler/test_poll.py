"""A look sees what is new since the last one, whoever did it and in whatever order it commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pgtrickle.model.frontier import Frontier
from pgtrickle.scheduler.policy.tick import Tick
from pgtrickle.scheduler.service.poll import poll
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres

Look = Callable[[], Tick]


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(1, 10)])


@pytest.fixture
def relid(orders, app):
    app.execute("select pgtrickle.create_stream_table('s', 'select sum(amount) as total from orders')")
    return app.execute("select 'orders'::regclass::oid::bigint").fetchone()[0]


@pytest.fixture
def again(relid, connection) -> Look:
    """Looks again, each time from where the last look ended."""
    connection.autocommit = True
    seen: list[Frontier] = [poll(connection, None, has_views=False).snapshot]

    def look_again() -> Tick:
        tick = poll(connection, seen[-1], has_views=False)
        seen.append(tick.snapshot)
        return tick

    return look_again


def test_a_write_is_seen_once(orders, relid, again):
    assert again().touched == {}
    orders.change("insert into orders values (2, 5)", "update orders set amount = 6 where id = 2")
    (transactions,) = again().touched.values()
    assert len(transactions) == 1
    assert again().touched == {}


def test_a_statement_that_changes_no_row_touches_nothing(orders, again):
    orders.change("update orders set amount = 1 where id = 77", "delete from orders where id = 78")
    assert again().touched == {}


def test_what_is_rolled_back_is_never_seen(again, connect):
    writer = connect(APP)
    writer.execute("insert into orders values (3, 1)")
    assert again().touched == {}
    writer.rollback()
    assert again().touched == {}


def test_a_transaction_that_commits_late_is_seen_when_it_does(orders, relid, again, connect):
    early = connect(APP)
    early.execute("insert into orders values (3, 1)")
    orders.change("insert into orders values (4, 1)")
    assert len(again().touched[relid]) == 1
    early.commit()
    assert len(again().touched[relid]) == 1
    assert again().touched == {}


def test_truncating_is_a_touch(orders, relid, again):
    orders.change("truncate orders")
    assert again().touched.keys() == {relid}


def test_rows_that_each_fire_a_trigger_touch_once_in_a_transaction(source, app, again):
    source("parted(id int, amount int) partition by range (id)")
    app.execute("create table parted_low partition of parted for values from (0) to (100)")
    app.execute("grant select, trigger on parted_low to trickle")
    app.execute("select pgtrickle.create_stream_table('p', 'select sum(amount) as total from parted_low')")
    again()
    with app.transaction():
        app.execute("insert into parted select n, n from generate_series(1, 50) n")
        app.execute("update parted set amount = 0")
    (transactions,) = again().touched.values()
    assert len(transactions) == 1


def test_a_savepoint_that_is_undone_does_not_hide_what_comes_after_it(source, app, again):
    source("parted(id int, amount int) partition by range (id)")
    app.execute("create table parted_low partition of parted for values from (0) to (100)")
    app.execute("grant select, trigger on parted_low to trickle")
    app.execute("select pgtrickle.create_stream_table('p', 'select sum(amount) as total from parted_low')")
    again()
    with app.transaction():
        with app.transaction(force_rollback=True):
            app.execute("insert into parted values (1, 1)")
        app.execute("insert into parted values (2, 2)")
    assert len(again().touched) == 1


def test_any_change_of_a_definition_is_seen_also_by_plain_sql(app, admin, again):
    app.execute("select pgtrickle.alter_stream_table('s', schedule => '5s')")
    assert again().redefined == {1}
    admin.execute("update pgtrickle.pgt_stream_tables set schedule = '7s'")
    assert again().redefined == {1}
    admin.execute("update pgtrickle.pgt_stream_tables set schedule = '7s', last_refresh_at = now()")
    assert again().redefined == frozenset()
    app.execute("select pgtrickle.create_stream_table('t', 'select id from orders')")
    assert again().redefined == {2}
    app.execute("select pgtrickle.drop_stream_table('t')")
    assert again().redefined == {2}


def test_a_gate_concerns_all(app, again):
    app.execute("select pgtrickle.gate_source('orders')")
    assert again().is_all_redefined


def test_a_stream_table_over_ten_sources_costs_one_query_too(source, app, connection):
    names = [f"s{number}" for number in range(10)]
    tables = [source(f"{name}(id int primary key)") for name in names]
    joined = " natural join ".join(names)
    app.execute("select pgtrickle.create_stream_table('wide', %s)", (f"select id from {joined}",))
    connection.autocommit = True
    counted: Any = Counted(connection)
    before = poll(counted, None, has_views=False)
    for table in tables:
        table.change(f"insert into {table.name} values (1)")
    assert len(poll(counted, before.snapshot, has_views=False).touched) == 10
    assert counted.statements == 2


class Counted:
    """A connection that counts what it is asked."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.statements = 0

    def execute(self, *arguments: Any) -> Any:
        self.statements += 1
        return self._connection.execute(*arguments)


def test_what_everybody_has_seen_is_emptied_and_nothing_else(orders, relid, connection, connect):
    connection.autocommit = True

    def emptied(seen: str):
        row = connection.execute(
            "select array[pgtrickle_internal.empty_touched(0, %(seen)s),"
            " pgtrickle_internal.empty_touched(1, %(seen)s)]",
            {"seen": seen},
        ).fetchone()
        return row[0]

    before = connection.execute("select pg_current_snapshot()::text").fetchone()[0]
    orders.change("insert into orders values (2, 5)")
    assert not all(emptied(before))
    now = connection.execute("select pg_current_snapshot()::text").fetchone()[0]
    writer = connect(APP)
    writer.execute("insert into orders values (3, 5)")
    assert not all(emptied(now))
    writer.rollback()
    assert all(emptied(now))
