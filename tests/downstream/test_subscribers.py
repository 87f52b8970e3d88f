"""A real subscriber of a stream table: it gets each change, and pgtrickle tells when it falls behind."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.commands.run import RefreshEvent
from pgtrickle.interfaces.logged_events import level_of
from pgtrickle.model.settings import LogLevel
from pgtrickle.scheduler.service.publication_alerts import watch_publications
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually

pytestmark = [pytest.mark.own_server, pytest.mark.slow]

LIMITS = AlertLimits(publication_lag=1000)
STATUS = (
    "select publication, slot, active, slot_state, is_late, lag_bytes > 1000"
    " from pgtrickle.publication_status"
)


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(n, n % 3) for n in range(9)])


@pytest.fixture
def sales(orders, app, refreshed):
    """A published stream table without a key, with equal rows."""
    app.execute(
        "select pgtrickle.create_stream_table('sales', 'select amount from orders', schedule => null,"
        " refresh_mode => 'FULL')"
    )
    refreshed("sales")
    app.execute("select pgtrickle.stream_table_to_publication('sales')")


@pytest.fixture
def reader(sales, subscriber):
    """A subscriber that has copied the stream table."""
    subscriber.create_table("amount int")
    subscriber.subscribe()
    subscriber.has_the_rows()
    subscriber.arrived()
    return subscriber


@pytest.fixture
def watched(connection):
    """Watches the publications as the sidecar does, and returns the events."""

    def watch():
        events: list[RefreshEvent] = []
        watch_publications(connection, LIMITS, events.append)
        connection.commit()
        return events

    return watch


def alerts(app: psycopg.Connection) -> list[str]:
    rows = app.execute("select event from pgtrickle.alerts() where event ~ 'publication' order by at")
    return [event for (event,) in rows]


def test_only_changed_rows_are_sent_and_equal_rows_are_counted(reader, orders, refreshed):
    orders.change("delete from orders where id = 0", "insert into orders values (100, 7)")
    refreshed("sales")
    reader.has_the_rows()
    assert sorted(reader.arrived()) == ["DELETE", "INSERT"]
    assert reader.rows().count((0,)) == 2
    # a load of everything writes the difference, too, and nothing is truncated
    orders.change("truncate orders", "insert into orders select n, 1 from generate_series(1, 4) n")
    refreshed("sales")
    reader.has_the_rows()
    assert "TRUNCATE" not in reader.arrived()


def test_a_subscriber_that_was_stopped_comes_back_and_has_every_row(reader, orders, refreshed, app, watched):
    app.execute("select pgtrickle.register_subscriber('sales', 'reader')")
    assert watched() == []
    reader.stop()
    for number in range(5):
        orders.change(
            f"insert into orders values ({200 + number}, {number})", f"delete from orders where id = {number}"
        )
        refreshed("sales")
    (late,) = watched()
    assert level_of(late) is LogLevel.WARNING
    assert "the subscriber with slot reader is" in (late.note or "")
    assert str(late.name) == "public.sales"
    assert watched() == []
    assert app.execute(STATUS).fetchall() == [("pgt_pub_sales", "reader", False, "inactive", True, True)]
    assert alerts(app) == ["publication_lag"]
    reader.resume()
    reader.has_the_rows()
    found: list[RefreshEvent] = []

    def is_over() -> bool:
        found.extend(watched())
        return bool(found)

    eventually(is_over)
    (over,) = found
    assert over.note == "the subscriber with slot reader has caught up"
    assert level_of(over) is LogLevel.INFO
    assert alerts(app) == ["publication_lag", "publication_lag_resolved"]
    assert app.execute(STATUS).fetchall() == [("pgt_pub_sales", "reader", True, "active", False, False)]


def test_a_connected_subscriber_is_found_where_its_command_is_visible(reader, app, admin, watched):
    watched()
    assert app.execute(STATUS).fetchall() == [("pgt_pub_sales", None, None, None, False, None)]
    admin.execute(f"grant pg_read_all_stats to {TRICKLE}")
    try:
        watched()
    finally:
        admin.execute(f"revoke pg_read_all_stats from {TRICKLE}")
    assert app.execute("select slot, active from pgtrickle.publication_status").fetchall() == [
        ("reader", True)
    ]
    reader.drop()
    watched()
    assert app.execute("select slot from pgtrickle.publication_status").fetchall() == [(None,)]


def test_other_columns_are_refused_while_a_subscriber_is_known(reader, app, refreshed, orders):
    app.execute("select pgtrickle.register_subscriber('sales', 'reader')")
    query = "select amount, count(*) as n from orders group by amount"
    alter = f"select pgtrickle.alter_stream_table('sales', '{query}')"
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="subscriber with slot reader"):
        app.execute(alter)
    reader.drop()
    told: list[str | None] = []
    app.add_notice_handler(lambda notice: told.append(notice.message_primary))
    app.execute(alter)
    assert told == [
        "subscribers do not receive the new columns and rows of public.sales, which stays in publication"
        " pgt_pub_sales"
    ]
    reader.connection.execute("truncate sales; alter table sales add n bigint")
    reader.subscribe()
    reader.has_the_rows()
    orders.change("insert into orders values (300, 1)")
    refreshed("sales")
    reader.has_the_rows()
    assert (1, 4) in reader.rows()


def test_the_same_columns_are_sent_as_a_difference(reader, app, refreshed):
    app.execute("select pgtrickle.register_subscriber('sales', 'reader')")
    app.execute("select pgtrickle.alter_stream_table('sales', 'select amount from orders where amount > 0')")
    refreshed("sales")
    reader.has_the_rows()
    assert reader.arrived() == ["DELETE"] * 3


def test_dropping_a_stream_table_drops_its_publication_and_names_its_slots(reader, app):
    app.execute("select pgtrickle.register_subscriber('sales', 'reader')")
    told: list[str | None] = []
    app.add_notice_handler(lambda notice: told.append(notice.message_primary))
    app.execute("select pgtrickle.drop_stream_table('sales')")
    assert told == ["slots of its subscribers still keep the log of the server: reader"]
    assert app.execute("select from pg_publication").fetchall() == []
    assert app.execute("select from pgtrickle.publication_status").fetchall() == []


def test_a_primary_key_stays_the_identity_and_changes_arrive(subscriber, orders, app, admin, refreshed):
    """A stream table with a primary key keeps it as its replica identity, and needs no whole rows."""
    app.execute(
        "select pgtrickle.create_stream_table('sales', 'select id, amount from orders', schedule => null,"
        " refresh_mode => 'FULL')"
    )
    refreshed("sales")
    app.execute("alter table sales add primary key (id)")
    app.execute("select pgtrickle.stream_table_to_publication('sales')")
    assert admin.execute("select relreplident from pg_class where relname = 'sales'").fetchone() == ("d",)
    subscriber.create_table("id int primary key, amount int")
    subscriber.subscribe()
    subscriber.has_the_rows()
    subscriber.arrived()
    orders.change("update orders set amount = 99 where id = 3")
    refreshed("sales")
    subscriber.has_the_rows()
    assert len(subscriber.arrived()) <= 2
