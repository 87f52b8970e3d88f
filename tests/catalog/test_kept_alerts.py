"""Alerts are kept for those who poll: bounded, without data, and only what was committed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgtrickle.catalog import alerts as kept
from pgtrickle.catalog.alerts import alert, prune_alerts
from pgtrickle.catalog.outcomes import Refreshed, commit_refresh
from pgtrickle.commands.alerts import alerts, follow_alerts, moment
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, StreamTableId
from pgtrickle.scheduler.policy.definitions import Definitions
from pgtrickle.scheduler.service.load_definitions import load_definitions
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits, note_buffer_sizes, note_stale_tables

pytestmark = pytest.mark.every_postgres

ONE = StreamTableId(1)


@pytest.fixture(autouse=True)
def one(source, app):
    source("orders(id int, note text)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id, note from orders')")


def found(connection: psycopg.Connection, since: object = None) -> list[tuple[str, str | None]]:
    return connection.execute("select event, stream_table from pgtrickle.alerts(%s)", (since,)).fetchall()


def refreshed(connection: psycopg.Connection) -> None:
    row = connection.execute("select pg_current_snapshot()::text").fetchone()
    assert row is not None
    frontier = Frontier.parse(row[0])
    # it has ended by now
    began = datetime.now(UTC) - timedelta(milliseconds=5)
    done = Refreshed(
        Action.FULL,
        began,
        began,
        frontier,
        upstream=None,
        milliseconds=5,
        reason="why",
    )
    commit_refresh(connection, ONE, done)
    connection.commit()


def test_alerts_are_read_in_order_since_a_moment(connection, app, database):
    alert(connection, "refresh_failed", pgt_id=1, error="PGT-S001")
    connection.commit()
    refreshed(connection)
    between = app.execute("select clock_timestamp()").fetchone()[0]
    alert(connection, "spark_lost", message="gone")
    connection.commit()
    assert found(app) == [
        ("refresh_failed", "public.s"),
        ("refresh_completed", "public.s"),
        ("spark_lost", None),
    ]
    assert found(app, between) == [("spark_lost", None)]
    first, done, lost = alerts(database.dsn("app"))
    assert first.details == {"error": "PGT-S001"}
    assert (done.details["action"], done.details["reason"]) == ("FULL", "why")
    assert lost.details == {"message": "gone"}
    assert len({first.alert_id, done.alert_id, lost.alert_id}) == 3


def test_what_is_rolled_back_is_not_kept(connection, app):
    alert(connection, "resumed", pgt_id=1)
    connection.rollback()
    assert found(app) == []


def test_a_silent_table_is_polled_for(connection, app, heard):
    app.execute("select pgtrickle.alter_stream_table('s', pooler_compatibility_mode => true)")
    alert(connection, "refresh_failed", pgt_id=1, error="PGT-S001")
    connection.commit()
    refreshed(connection)
    assert heard() == []
    assert [event for event, _ in found(app)] == ["refresh_failed", "refresh_completed"]


def test_alerts_outlive_their_stream_table(connection, app):
    alert(connection, "auto_suspended", pgt_id=1)
    connection.commit()
    app.execute("select pgtrickle.drop_stream_table('s')")
    assert found(app) == [("auto_suspended", "public.s")]


def test_old_alerts_and_too_many_are_removed(connection, admin, app, monkeypatch):
    monkeypatch.setattr(kept, "KEPT", 3)
    for number in range(5):
        alert(connection, "resumed", pgt_id=1, number=number)
    prune_alerts(connection)
    connection.commit()
    numbers = "select details ->> 'number' from pgtrickle.alerts('-infinity')"
    assert app.execute(numbers).fetchall() == [("2",), ("3",), ("4",)]
    admin.execute("update pgtrickle.pgt_alerts set at = now() - interval '8 days' where alert_id % 2 = 1")
    prune_alerts(connection)
    connection.commit()
    assert app.execute(numbers).fetchall() == [("3",)]


def test_nobody_else_can_write_them(app):
    for statement in (
        "insert into pgtrickle.pgt_alerts (at, event, details) values (now(), 'x', '{}')",
        "delete from pgtrickle.pgt_alerts",
        "select pgtrickle_internal.emit_alert('x', '{}')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute(statement)


def test_following_goes_on_with_new_alerts_and_repeats_none(connection, database):
    start = datetime.now(UTC) - timedelta(hours=1)
    alert(connection, "resumed", pgt_id=1, number=1)
    connection.commit()
    following = follow_alerts(database.dsn("app"), start)
    assert next(following).details == {"number": 1}
    for number in (2, 3):
        alert(connection, "resumed", pgt_id=1, number=number)
    connection.commit()
    assert [next(following).details["number"] for _ in range(2)] == [2, 3]
    following.close()


def test_a_moment_is_a_time_or_how_long_ago(database):
    dsn = database.dsn("app")
    assert moment(dsn, "2026-05-01 12:00+00") == datetime(2026, 5, 1, 12, tzinfo=UTC)
    ago = datetime.now(UTC) - moment(dsn, "2h")
    assert timedelta(hours=1, minutes=59) < ago < timedelta(hours=2, minutes=1)
    with pytest.raises(PgTrickleError, match="'soon' is neither a time nor a length of time"):
        moment(dsn, "soon")


def stale_alerts(connection: psycopg.Connection, limits: AlertLimits) -> None:
    definitions, _ = load_definitions(connection)
    note_stale_tables(connection, Definitions.of(definitions.values()), limits)
    connection.commit()


def test_stale_data_is_told_once_and_so_is_its_end(connection, app, admin, heard):
    refreshed(connection)
    app.execute("insert into orders values (1, 'secret')")
    admin.execute("update pgtrickle.pgt_stream_tables set data_timestamp = now() - interval '2 min'")
    for side in (0, 1):
        admin.execute(f"update pgtrickle_changes.touched_{side} set touched_at = now() - interval '90 s'")
    stale_alerts(connection, AlertLimits(stale_after=3600))
    assert heard() == []
    # a long refresh holds the row of its stream table
    with admin.transaction():
        admin.execute("select from pgtrickle.pgt_stream_tables for no key update")
        for _ in range(2):
            stale_alerts(connection, AlertLimits())
    told = heard()
    assert [(t["event"], t["stream_table"], t["schedule"]) for t in told] == [
        ("stale_data", "public.s", "calculated")
    ] * 2
    assert 90 <= float(str(told[0]["staleness_seconds"])) < 110
    assert "secret" not in str(told)
    assert app.execute("select stale from pgtrickle.pg_stat_stream_tables").fetchone() == (True,)
    refreshed(connection)
    for _ in range(2):
        stale_alerts(connection, AlertLimits())
    assert [t["event"] for t in heard()] == ["stale_data_resolved"] * 2
    assert found(app)[-2:] == [("refresh_completed", "public.s"), ("stale_data_resolved", "public.s")]


def test_what_somebody_paused_is_not_stale(connection, app, admin, heard):
    refreshed(connection)
    admin.execute(
        "update pgtrickle.pgt_stream_tables set data_timestamp = now() - interval '1 h', needs_reinit = true"
    )
    app.execute("select pgtrickle.gate_source('orders')")
    stale_alerts(connection, AlertLimits())
    app.execute("select pgtrickle.ungate_source('orders')")
    app.execute("select pgtrickle.alter_stream_table('s', status => 'SUSPENDED')")
    stale_alerts(connection, AlertLimits())
    stale_alerts(connection, AlertLimits(stale_after=0))
    assert heard() == []


def test_a_large_buffer_is_told_once_and_so_is_its_end(connection, app, admin, heard):
    refreshed(connection)
    limits = AlertLimits(buffer_growth=1 << 20)
    note_buffer_sizes(connection, limits)
    app.execute("insert into orders select n, repeat('x', 1000) from generate_series(1, 2000) n")
    for _ in range(2):
        note_buffer_sizes(connection, limits)
        connection.commit()
    told = heard()
    assert [(t["event"], t["source"], t["slowest_readers"]) for t in told] == [
        ("buffer_growth_warning", "public.orders", ["public.s"])
    ] * 2
    assert int(str(told[0]["bytes"])) > 1 << 20
    admin.execute(
        "do $$ begin execute format('truncate pgtrickle_changes.changes_%1$s_0,"
        " pgtrickle_changes.changes_%1$s_1', 'orders'::regclass::oid); end $$"
    )
    for _ in range(2):
        note_buffer_sizes(connection, limits)
        connection.commit()
    assert [t["event"] for t in heard()] == ["buffer_growth_resolved"] * 2


def test_what_was_dropped_is_no_episode(connection, app, admin):
    admin.execute(
        "insert into pgtrickle.pgt_episodes (event, subject) values ('stale_data', 1), ('stale_data', 99)"
    )
    prune_alerts(connection)
    connection.commit()
    assert admin.execute("select subject from pgtrickle.pgt_episodes").fetchall() == [(1,)]
