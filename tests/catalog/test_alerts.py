"""Whoever listens hears what was committed, on both channels, and nothing that quotes data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgtrickle.catalog.alerts import alert
from pgtrickle.catalog.outcomes import mark_reinit, record_failure
from pgtrickle.model.stream_table import Action, StreamTableId

pytestmark = pytest.mark.every_postgres

ONE = StreamTableId(1)


@pytest.fixture(autouse=True)
def one(source, app):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")


def failed(connection) -> None:
    record_failure(
        connection,
        ONE,
        "no such value: secret",
        action=Action.FULL,
        started_at=datetime.now(UTC),
        delays=[timedelta(seconds=1)],
    )
    connection.commit()


def test_the_last_failure_suspends_and_resuming_is_told_too(connection, app, heard):
    failed(connection)
    assert heard() == []
    failed(connection)
    told = heard()
    assert [(t["event"], t["stream_table"], t["consecutive_errors"]) for t in told] == [
        ("auto_suspended", "public.s", 2)
    ] * 2
    assert "secret" not in str(told)
    app.execute("select pgtrickle.resume_stream_table('s')")
    app.execute("select pgtrickle.resume_stream_table('s')")
    assert [(t["event"], t["pgt_id"]) for t in heard()] == [("resumed", 1)] * 2


def test_a_table_that_must_be_computed_anew_is_told_of_once(connection, app, heard):
    for reason in ("trigger a of b was off", "trigger c of b was off"):
        mark_reinit(connection, ONE, reason)
        connection.commit()
    assert [(t["event"], t["reason"]) for t in heard()] == [
        ("reinitialize_needed", "trigger a of b was off")
    ] * 2
    app.execute("select pgtrickle.repair_stream_table('s')")
    assert [t["event"] for t in heard()] == ["reinitialize_needed"] * 2


def test_what_is_rolled_back_is_not_told(connection, heard):
    alert(connection, "resumed", pgt_id=1)
    connection.rollback()
    assert heard() == []


def test_a_table_in_pooler_compatibility_mode_keeps_silent(connection, app, heard):
    app.execute("select pgtrickle.alter_stream_table('s', pooler_compatibility_mode => true)")
    failed(connection)
    failed(connection)
    app.execute("select pgtrickle.resume_stream_table('s')")
    assert heard() == []


def test_an_alert_too_long_for_postgresql_is_shortened(connection, heard):
    alert(connection, "resumed", pgt_id=1, reason="é" * 9000)
    connection.commit()
    assert [(t["event"], t["stream_table"], t["is_shortened"]) for t in heard()] == [
        ("resumed", "public.s", True)
    ] * 2
