"""Draining: refreshes that run finish, none starts, until somebody lets them."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pgtrickle.catalog.claims import claim
from pgtrickle.model.errors import Drained
from pgtrickle.model.stream_table import StreamTableId
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.every_postgres

ONE, TWO = StreamTableId(1), StreamTableId(2)


@pytest.fixture(autouse=True)
def tables(source, app):
    source("orders(id int)")
    for name in ("a", "b"):
        app.execute("select pgtrickle.create_stream_table(%s, 'select id from orders')", (name,))


@pytest.fixture
def keeper(connect) -> psycopg.Connection:
    """The role that owns pgtrickle, each statement committed at once."""
    connection: psycopg.Connection = connect(TRICKLE)
    connection.autocommit = True
    return connection


def told(connection: psycopg.Connection, function: str) -> bool:
    row = connection.execute(f"select {function}").fetchone()
    assert row is not None
    return bool(row[0])


def test_nothing_starts_after_drain_and_all_does_after_undrain(keeper, connection):
    assert not told(keeper, "pgtrickle.is_drained()")
    assert told(keeper, "pgtrickle.drain(5)")
    assert told(keeper, "pgtrickle.is_drained()")
    with pytest.raises(Drained, match="drained"):
        claim(connection, ONE, wait=False)
    connection.rollback()
    assert told(keeper, "pgtrickle.drain(5)")
    keeper.execute("select pgtrickle.undrain()")
    keeper.execute("select pgtrickle.undrain()")
    assert not told(keeper, "pgtrickle.is_drained()")
    assert claim(connection, ONE, wait=False) is not None


def test_drain_waits_for_a_refresh_that_runs_and_lets_none_overtake(keeper, connection, connect):
    assert claim(connection, ONE, wait=False) is not None
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(told(keeper, "pgtrickle.drain(60)")))
    waiting.start()
    other = connect(TRICKLE)
    eventually(lambda: told(other, "pgtrickle_internal.is_draining()"))
    with pytest.raises(Drained):
        claim(other, TWO, wait=False)
    other.rollback()
    assert not told(other, "pgtrickle.is_drained()")
    other.rollback()
    connection.commit()
    waiting.join()
    assert answers == [True]
    assert told(other, "pgtrickle.is_drained()")


def test_a_drain_that_runs_out_of_time_goes_on_draining(keeper, connection, connect):
    assert claim(connection, ONE, wait=False) is not None
    assert not told(keeper, "pgtrickle.drain(0)")
    assert not told(keeper, "pgtrickle.is_drained()")
    other = connect(TRICKLE)
    with pytest.raises(Drained):
        claim(other, TWO, wait=False)
    connection.commit()
    assert told(keeper, "pgtrickle.is_drained()") is False
    other.rollback()
    assert told(keeper, "pgtrickle.is_drained()")


def test_in_a_transaction_it_holds_from_the_call_on_and_is_undone_with_it(connection, connect):
    other = connect(TRICKLE)
    assert told(other, "pgtrickle.drain(5)")
    with pytest.raises(Drained):
        claim(connection, ONE, wait=False)
    connection.rollback()
    other.rollback()
    assert claim(connection, ONE, wait=False) is not None


def test_who_asks_for_a_refresh_is_told_at_once(keeper, app):
    keeper.execute("select pgtrickle.drain()")
    with pytest.raises(psycopg.Error, match=r"drained since .* by trickle") as no:
        app.execute("select pgtrickle.refresh_stream_table('a')")
    assert no.value.sqlstate == Drained.sqlstate
    assert "undrain" in (no.value.diag.message_hint or "")


def test_the_lock_timeout_of_the_caller_stays_as_it_was(connect):
    caller = connect(TRICKLE)
    caller.execute("set lock_timeout = '7s'")
    told(caller, "pgtrickle.drain(1)")
    assert caller.execute("show lock_timeout").fetchone() == ("7s",)


def test_only_who_owns_the_database_or_pgtrickle_may_drain(app, admin):
    for function in ("drain()", "undrain()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            app.execute(f"select pgtrickle.{function}")
        assert refused.value.diag.message_hint == "Connect as trickle."
    assert told(admin, "pgtrickle.drain(1)")
    assert told(app, "pgtrickle.is_drained()")


@pytest.mark.parametrize("timeout", ["-1", "null", "86401"])
def test_a_bad_timeout_is_refused(keeper, timeout):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=timeout):
        keeper.execute(f"select pgtrickle.drain({timeout})")
    assert not told(keeper, "pgtrickle.is_drained()")
