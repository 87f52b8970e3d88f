"""A refresh that changes a stream table notifies the channels that were subscribed, when it commits."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from pgtrickle.catalog.alerts import alert
from pgtrickle.catalog.tables import find
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import TRICKLE
from tests.security.conftest import no_spark

pytestmark = pytest.mark.every_postgres

READER = "loader"


@pytest.fixture(autouse=True)
def sales(source, app):
    source("orders(id int primary key, word text)", rows=[(1, "secret")])
    app.execute(
        "select pgtrickle.create_stream_table('sales', 'select id, word from orders', schedule => null,"
        " refresh_mode => 'FULL')"
    )


@pytest.fixture
def engine(database) -> Iterator[Engine]:
    engine = Engine(database.dsn(TRICKLE), no_spark, max_connections=5)
    yield engine
    engine.close()


@pytest.fixture
def refreshed(engine):
    def run():
        with engine.connection() as connection:
            table = find(connection, "sales")
        return refresh(engine, table.id, initiated_by="test", waits=True)

    return run


@pytest.fixture
def reader(admin, connect, database) -> psycopg.Connection:
    """Somebody who owns nothing and may read the stream table."""
    admin.execute(
        f"do $$ begin create role {READER} login password '{database.server.password}';"
        " exception when duplicate_object then null; end $$"
    )
    admin.execute(f"grant select on sales to {READER}")
    connection: psycopg.Connection = connect(READER)
    connection.autocommit = True
    return connection


def heard(connection: psycopg.Connection) -> list[tuple[str, dict[str, object]]]:
    connection.execute("select 1")
    return [(notice.channel, json.loads(notice.payload)) for notice in connection.notifies(timeout=0)]


def subscribe(connection: psycopg.Connection, channel: str) -> None:
    connection.execute("select pgtrickle.subscribe('public.sales', %s)", (channel,))


def test_each_refresh_that_changes_rows_notifies_with_numbers_and_no_rows(app, refreshed):
    subscribe(app, "sales_changed")
    app.execute("listen sales_changed")
    refreshed()
    app.execute("update orders set word = 'hidden'")
    refreshed()
    # nothing changed
    refreshed()
    (_, first), (_, second) = heard(app)
    assert first.keys() == {"stream_table", "inserted", "deleted", "refresh_id", "data_timestamp"}
    assert (first["stream_table"], first["inserted"], first["deleted"]) == ("public.sales", 1, 0)
    assert (second["inserted"], second["deleted"]) == (1, 1)
    newest = app.execute(
        "select max(refresh_id), max(data_timestamp)::text from pgtrickle.get_refresh_history('sales')"
        " where rows_inserted > 0"
    ).fetchone()
    assert newest is not None
    assert second["refresh_id"] == newest[0]
    assert str(second["data_timestamp"])[:19] == newest[1][:19]
    assert "hidden" not in str(second)


def test_a_full_queue_makes_no_refresh_fail(connection, app, admin):
    """The guard of alerts holds for subscriptions: nothing is sent while the queue is half full."""
    subscribe(app, "sales_changed")
    app.execute("listen sales_changed")
    admin.execute(
        "create schema stub; create function stub.pg_notification_queue_usage() returns double precision"
        f" language sql as 'select 0.9::double precision'; grant usage on schema stub to {TRICKLE}"
    )
    connection.execute(
        "alter function pgtrickle_internal.emit_alert set search_path = stub, pg_catalog, pg_temp"
    )
    alert(connection, "refresh_completed", pgt_id=1, rows_inserted=1, rows_deleted=0)
    connection.commit()
    assert heard(app) == []
    connection.execute("alter function pgtrickle_internal.emit_alert set search_path = pg_catalog, pg_temp")
    alert(connection, "refresh_completed", pgt_id=1, rows_inserted=1, rows_deleted=0)
    connection.commit()
    assert len(heard(app)) == 1


def test_who_may_read_may_subscribe_and_unsubscribe(reader, app, refreshed):
    subscribe(reader, "mine")
    subscribe(reader, "mine")
    rows = app.execute(
        "select stream_table, channel, subscribed_by::text, is_notified from pgtrickle.subscriptions"
    )
    assert rows.fetchall() == [("public.sales", "mine", READER, True)]
    reader.execute("listen mine")
    refreshed()
    assert [channel for channel, _ in heard(reader)] == ["mine"]
    reader.execute("select pgtrickle.unsubscribe('public.sales', 'mine')")
    reader.execute("select pgtrickle.unsubscribe('public.sales', 'mine')")
    assert app.execute("select from pgtrickle.subscriptions").fetchall() == []


def test_who_may_not_read_any_more_is_not_notified_and_can_still_unsubscribe(reader, admin, app, refreshed):
    subscribe(reader, "mine")
    admin.execute(f"revoke select on sales from {READER}")
    app.execute("listen mine")
    refreshed()
    assert heard(app) == []
    assert app.execute("select is_notified from pgtrickle.subscriptions").fetchall() == [(False,)]
    assert reader.execute("select from pgtrickle.subscriptions").fetchall() == []
    reader.execute("select pgtrickle.unsubscribe('public.sales', 'mine')")
    assert app.execute("select from pgtrickle.subscriptions").fetchall() == []


def test_who_may_not_read_cannot_subscribe_by_any_way(reader, admin):
    admin.execute(f"revoke select on sales from {READER}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
        subscribe(reader, "mine")
    assert refused.value.diag.message_hint == f"grant select on public.sales to {READER}"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute("insert into pgtrickle_internal.own_subscriptions (pgt_id, channel) values (1, 'x')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(
            "insert into pgtrickle_internal.own_subscriptions (pgt_id, channel, subscribed_by)"
            " values (1, 'x', 10)"
        )


def test_only_the_owner_ends_subscriptions_of_others(reader, app):
    subscribe(app, "theirs")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="by another role"):
        reader.execute("select pgtrickle.unsubscribe('public.sales', 'theirs')")
    subscribe(reader, "mine")
    app.execute("select pgtrickle.unsubscribe('sales', 'mine')")
    assert app.execute("select channel from pgtrickle.subscriptions").fetchall() == [("theirs",)]


@pytest.mark.parametrize("channel", ["", "x" * 64, "a\nb", None, "pgtrickle_alert", "PG_trickle_alert"])
def test_what_is_no_channel_or_is_ours_is_refused(app, channel):
    with pytest.raises(psycopg.Error) as refused:
        subscribe(app, channel)
    assert refused.value.sqlstate == "42602"
    with pytest.raises(psycopg.Error):
        app.execute(
            "insert into pgtrickle_internal.own_subscriptions (pgt_id, channel) values (1, %s)", (channel,)
        )


@pytest.mark.parametrize("channel", ["Sales", 'a"b; c', "über"])
def test_a_channel_is_taken_as_it_is(app, refreshed, channel):
    subscribe(app, channel)
    app.execute(psycopg.sql.SQL("listen {}").format(psycopg.sql.Identifier(channel)))
    refreshed()
    assert [name for name, _ in heard(app)] == [channel]


def test_a_table_in_pooler_compatibility_mode_sends_none_and_refuses(app):
    subscribe(app, "mine")
    turn_on = "select pgtrickle.alter_stream_table('sales', pooler_compatibility_mode => true)"
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="on: mine") as refused:
        app.execute(turn_on)
    assert "unsubscribe('public.sales', channel)" in (refused.value.diag.message_hint or "")
    app.execute("select pgtrickle.unsubscribe('sales', 'mine')")
    app.execute(turn_on)
    with pytest.raises(
        psycopg.errors.ObjectNotInPrerequisiteState, match="pooler compatibility mode"
    ) as refused:
        subscribe(app, "mine")
    assert "pooler_compatibility_mode => false" in (refused.value.diag.message_hint or "")


def test_a_role_has_at_most_twenty_channels_for_a_stream_table(reader, app):
    for number in range(20):
        subscribe(reader, f"channel_{number}")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="20 subscriptions"):
        subscribe(reader, "one_more")
    subscribe(app, "of_somebody_else")


def test_a_dropped_stream_table_has_no_subscriptions(app):
    subscribe(app, "mine")
    app.execute("select pgtrickle.drop_stream_table('sales')")
    assert app.execute("select from pgtrickle.subscriptions").fetchall() == []
