"""Staleness is the age of the oldest change that a stream table does not show, and 0 if there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import NoReturn

import psycopg
import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.commands.status import table_status
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import Database
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.every_postgres

HOUR = timedelta(hours=1)


def no_spark() -> NoReturn:
    raise AssertionError("PostgreSQL alone evaluates a FULL refresh")


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    engine = Engine(database.dsn(), no_spark, max_connections=8)
    yield engine
    engine.close()


Create = Callable[..., str]


@pytest.fixture
def loaded(app: psycopg.Connection, engine: Engine) -> Create:
    """Create a stream table and load it."""

    def create(name: str, query: str) -> str:
        app.execute(
            "select pgtrickle.create_stream_table(%s, %s, schedule => null, refresh_mode => 'FULL')",
            (name, query),
        )
        follow(engine, name)
        return name

    return create


def follow(engine: Engine, name: str) -> None:
    with engine.connection() as connection:
        table = find(connection, name)
    refresh(engine, table.id, initiated_by="test", waits=True)


def staleness(connection: psycopg.Connection, name: str) -> float:
    """The staleness of one stream table, after checking that asking for all of them gives the same."""
    row = connection.execute(
        "select pgtrickle.get_staleness(%s), array_agg(f.shown_until = i.data_timestamp)"
        " from pgtrickle.stream_tables_info i cross join lateral (values (null), (array[i.pgt_id])) v(ids)"
        " cross join lateral pgtrickle_internal.shown_times(v.ids) f"
        " where i.pgt_id = pgtrickle_internal.stream_table(%s) and f.pgt_id = i.pgt_id group by i.pgt_id",
        (name, name),
    ).fetchone()
    assert row is not None
    assert row[1] == [True, True]
    return float(row[0])


def pretend_last_refresh(admin: psycopg.Connection, age: timedelta) -> None:
    admin.execute("update pgtrickle.pgt_stream_tables set data_timestamp = now() - %s", (age,))


def pretend_writes(admin: psycopg.Connection, age: timedelta) -> None:
    for side in (0, 1):
        admin.execute(f"update pgtrickle_changes.touched_{side} set touched_at = now() - %s", (age,))


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(1, 10)])


def test_an_idle_stream_table_is_not_stale_however_long_ago_its_refresh_was(orders, loaded, app, admin):
    loaded("totals", "select sum(amount) as total from orders")
    pretend_last_refresh(admin, HOUR)
    assert staleness(app, "totals") == 0
    row = app.execute("select data_timestamp = statement_timestamp() from pgtrickle.pgt_status()").fetchone()
    assert row == (True,)


def test_staleness_counts_from_the_oldest_change_that_is_not_shown(orders, loaded, app, admin, engine):
    loaded("totals", "select sum(amount) as total from orders")
    pretend_last_refresh(admin, HOUR)
    orders.change("insert into orders values (2, 5)")
    pretend_writes(admin, timedelta(seconds=100))
    orders.change("insert into orders values (3, 5)")
    assert 100 <= staleness(app, "totals") < 110
    follow(engine, "totals")
    assert staleness(app, "totals") == 0


def test_a_change_committed_after_a_refresh_is_not_older_than_that_refresh(orders, loaded, app, admin):
    """Its transaction may have written it long before, but nobody could see it."""
    loaded("totals", "select sum(amount) as total from orders")
    pretend_last_refresh(admin, timedelta(seconds=20))
    orders.change("insert into orders values (2, 5)")
    pretend_writes(admin, HOUR)
    assert 20 <= staleness(app, "totals") < 30


def test_all_interfaces_agree(orders, loaded, app, admin, database):
    loaded("totals", "select sum(amount) as total from orders")
    pretend_last_refresh(admin, HOUR)
    orders.change("insert into orders values (2, 5)")
    pretend_writes(admin, timedelta(seconds=100))
    row = app.execute(
        "select extract(epoch from p.staleness) = extract(epoch from i.staleness),"
        " p.data_timestamp = i.data_timestamp, statement_timestamp() - i.staleness = i.data_timestamp,"
        " pgtrickle.get_staleness('totals') = extract(epoch from i.staleness)::float8"
        " from pgtrickle.pgt_status() p, pgtrickle.stream_tables_info i"
    ).fetchone()
    assert row == (True, True, True, True)
    status = table_status(database.dsn("app"), "totals")
    assert status.staleness_seconds is not None
    assert 100 <= status.staleness_seconds < 110
    assert status.data_timestamp is not None


def test_a_write_that_changes_no_row_makes_nothing_stale(orders, loaded, app, admin):
    loaded("totals", "select sum(amount) as total from orders")
    pretend_last_refresh(admin, HOUR)
    orders.change("update orders set amount = 1 where false")
    assert staleness(app, "totals") == 0


def test_the_age_stays_known_when_touched_sources_are_tidied_away(orders, loaded, app, admin, connection):
    loaded("totals", "select sum(amount) as total from orders")
    loaded("counts", "select count(*) as number from orders")
    pretend_last_refresh(admin, HOUR)
    orders.change("insert into orders values (2, 5)")
    orders.change("insert into orders values (3, 5)")
    pretend_writes(admin, timedelta(seconds=100))
    connection.autocommit = True

    def is_empty(side: int) -> bool:
        row = connection.execute(
            "select pgtrickle_internal.empty_touched(%s, pg_current_snapshot())", (side,)
        ).fetchone()
        return bool(row and row[0])

    for side in (0, 1, 0, 1, 0):
        eventually(partial(is_empty, side))
        assert 100 <= staleness(app, "totals") < 130
    assert count_of_touches(admin) == 1


def test_touched_sources_that_all_readers_have_seen_are_dropped(orders, loaded, admin, connection, engine):
    loaded("totals", "select sum(amount) as total from orders")
    orders.change("insert into orders values (2, 5)")
    follow(engine, "totals")
    connection.autocommit = True
    for side in (0, 1):
        connection.execute("select pgtrickle_internal.empty_touched(%s, pg_current_snapshot())", (side,))
    assert count_of_touches(admin) == 0


def count_of_touches(admin: psycopg.Connection) -> int:
    row = admin.execute(
        "select (select count(*) from pgtrickle_changes.touched_0)"
        " + (select count(*) from pgtrickle_changes.touched_1)"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_stream_table_is_as_stale_as_the_one_it_reads(orders, loaded, app, admin, engine):
    loaded("totals", "select sum(amount) as total from orders")
    loaded("doubled", "select total * 2 as total from totals")
    pretend_last_refresh(admin, HOUR)
    orders.change("insert into orders values (2, 5)")
    pretend_writes(admin, timedelta(seconds=100))
    assert 100 <= staleness(app, "doubled") < 110
    follow(engine, "totals")
    assert staleness(app, "totals") == 0
    assert 0 < staleness(app, "doubled") < 10
    follow(engine, "doubled")
    assert staleness(app, "doubled") == 0


def test_a_query_over_the_clock_grows_stale_by_itself(source, loaded, app, admin):
    source("events(at timestamptz)", rows=[("2020-01-01",)])
    loaded("recent", "select at from events where at > now() - interval '1 hour'")
    pretend_last_refresh(admin, HOUR)
    assert 3600 <= staleness(app, "recent") < 3700


def test_an_altered_source_makes_its_readers_stale(orders, loaded, app, admin):
    loaded("totals", "select sum(amount) as total from orders")
    pretend_last_refresh(admin, HOUR)
    admin.execute("update pgtrickle.pgt_stream_tables set needs_reinit = true, reinit_reason = 'altered'")
    assert 3600 <= staleness(app, "totals") < 3700


def test_a_stream_table_that_was_never_loaded_has_no_staleness(orders, app):
    app.execute("select pgtrickle.create_stream_table('totals', 'select sum(amount) as total from orders')")
    assert app.execute("select pgtrickle.get_staleness('totals')").fetchone() == (None,)


def test_asking_for_staleness_keeps_no_lock_on_buffers(orders, loaded, connect, admin):
    loaded("totals", "select sum(amount) as total from orders")
    orders.change("insert into orders values (2, 5)")
    asking = connect("app")
    asking.execute("select pgtrickle.get_staleness('totals')")
    held = admin.execute(
        "select l.relation::regclass::text from pg_locks l join pg_class c on c.oid = l.relation"
        " where c.relnamespace = 'pgtrickle_changes'::regnamespace and l.pid = %s",
        (asking.info.backend_pid,),
    ).fetchall()
    assert held == []


@pytest.mark.parametrize(
    "damage",
    [
        "drop table pgtrickle_changes.touched_0",
        "alter table pgtrickle_changes.touched_1 drop column touched_at",
        "do $$ begin execute format('drop table pgtrickle_changes.changes_%s_0', 'orders'::regclass::oid);"
        " end $$",
    ],
)
def test_without_a_record_of_changes_the_last_refresh_counts(damage, orders, loaded, app, admin):
    loaded("totals", "select sum(amount) as total from orders")
    orders.change("insert into orders values (2, 5)")
    pretend_last_refresh(admin, HOUR)
    admin.execute(damage)
    assert 3600 <= staleness(app, "totals") < 3700


def test_a_refreshed_materialized_view_makes_its_readers_stale(orders, loaded, app, admin):
    app.execute("create materialized view doubled as select amount * 2 as amount from orders")
    app.execute("grant select on doubled to trickle")
    loaded("totals", "select sum(amount) as total from doubled")
    loaded("above", "select total from totals")
    pretend_last_refresh(admin, HOUR)
    assert (staleness(app, "totals"), staleness(app, "above")) == (0, 0)
    app.execute("refresh materialized view doubled")
    assert 3600 <= staleness(app, "totals") < 3700
    assert 3600 <= staleness(app, "above") < 3700


def test_pending_changes_are_counted_for_each_reader(orders, loaded, app, engine):
    loaded("totals", "select sum(amount) as total from orders")
    orders.change("insert into orders values (2, 5)")
    loaded("counts", "select count(*) as number from orders")
    orders.change("update orders set amount = 1 where id = 2", "delete from orders where id = 1")
    assert app.execute(
        "select stream_table, source_table, cdc_mode, pending_rows, buffer_bytes > 0"
        " from pgtrickle.change_buffer_sizes()"
    ).fetchall() == [
        ("public.counts", "public.orders", "trigger", 3, True),
        ("public.totals", "public.orders", "trigger", 4, True),
    ]
    follow(engine, "totals")
    assert app.execute("select sum(pending_rows) from pgtrickle.change_buffer_sizes()").fetchone() == (3,)
