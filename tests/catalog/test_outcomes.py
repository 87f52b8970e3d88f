"""Claims, and what refreshes leave in the catalog."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgtrickle.catalog.claims import claim
from pgtrickle.catalog.outcomes import (
    Refreshed,
    commit_refresh,
    mark_error,
    mark_reinit,
    prune_history,
    record_failure,
    set_compiled,
)
from pgtrickle.catalog.repairs import Cause, note_repair, prune_repairs
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, RefreshMode, Status, StreamTableId
from pgtrickle.scheduler.service.maintenance_tasks import tidy
from tests.fixtures.polls import requested

pytestmark = pytest.mark.every_postgres

ONE = StreamTableId(1)
START = datetime(2026, 1, 1, tzinfo=UTC)
DELAYS = [timedelta(seconds=s) for s in (1, 2, 4)]


@pytest.fixture(autouse=True)
def one(source, app):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")


def refreshed(connection: psycopg.Connection, action: Action = Action.DIFFERENTIAL, **more) -> Refreshed:
    row = connection.execute("select pg_current_snapshot()::text").fetchone()
    assert row is not None
    return Refreshed(action, START, START, frontier=Frontier.parse(row[0]), upstream=None, **more)


def history(connection: psycopg.Connection) -> list[tuple[str, str, str]]:
    found = connection.execute(
        "select action, status, initiated_by from pgtrickle.pgt_refresh_history order by refresh_id"
    ).fetchall()
    connection.commit()
    return found


def test_a_claim_is_held_until_the_transaction_ends(connection, connect):
    other = connect("trickle")
    assert claim(connection, ONE, wait=False) is not None
    assert claim(other, ONE, wait=False) is None
    connection.rollback()
    assert claim(other, ONE, wait=True) is not None


def test_a_claim_of_nothing_is_none(connection):
    assert claim(connection, StreamTableId(77), wait=False) is None


def test_a_claimed_table_can_still_be_asked_for(connection, app):
    assert claim(connection, ONE, wait=False)
    app.execute("select pgtrickle_internal.request_refresh(1)")
    assert requested(connection) == {ONE}


def test_a_refresh_is_stored_with_its_history(connection):
    claim(connection, ONE, wait=False)
    done = refreshed(connection, rows_inserted=3, rows_deleted=1, delta_rows=4, reason="window of 4")
    commit_refresh(connection, ONE, done)
    connection.commit()
    table = stream_table(connection, ONE)
    assert (table.status, table.is_populated, table.frontier) == (Status.ACTIVE, True, done.frontier)
    assert history(connection) == [("DIFFERENTIAL", "COMPLETED", "scheduler")]


def test_nothing_done_leaves_no_history_unless_asked_for(connection):
    commit_refresh(connection, ONE, refreshed(connection, Action.NO_DATA))
    commit_refresh(connection, ONE, refreshed(connection, Action.NO_DATA, initiated_by="manual"))
    connection.commit()
    assert history(connection) == [("NO_DATA", "COMPLETED", "manual")]


def test_failures_back_off_and_then_suspend(connection):
    found = [
        record_failure(connection, ONE, "no", action=Action.FULL, started_at=START, delays=DELAYS[:2])
        for _ in range(3)
    ]
    assert found == [Status.ERROR, Status.ERROR, Status.SUSPENDED]
    assert stream_table(connection, ONE).last_error == "no"
    assert [status for _, status, _ in history(connection)] == ["FAILED"] * 3


def test_the_next_try_waits_longer_each_time(connection):
    waits = []
    for _ in range(3):
        record_failure(connection, ONE, "no", action=Action.FULL, started_at=START, delays=DELAYS)
        row = connection.execute(
            "select round(extract(epoch from retry_at - last_refresh_at)) from pgtrickle.pgt_stream_tables"
        ).fetchone()
        assert row is not None
        waits.append(int(row[0]))
    assert waits == [1, 2, 4]


def test_a_success_forgives_failures(connection):
    record_failure(connection, ONE, "no", action=Action.FULL, started_at=START, delays=DELAYS)
    mark_reinit(connection, ONE, "because")
    assert stream_table(connection, ONE).reinit_reason == "because"
    commit_refresh(connection, ONE, refreshed(connection, Action.REINITIALIZE))
    table = stream_table(connection, ONE)
    assert (table.consecutive_errors, table.last_error, table.reinit_reason) == (0, None, None)


def test_what_the_compiler_found_is_stored(connection):
    assert stream_table(connection, ONE).follows_clock is None
    set_compiled(connection, ONE, RefreshMode.FULL, "it has a window", follows_clock=True)
    table = stream_table(connection, ONE)
    assert (table.effective_mode, table.downgrade_reason) == (RefreshMode.FULL, "it has a window")
    assert table.follows_clock is True


def test_a_waiting_procedure_gets_its_answer(connection, database):
    """The refresh that answers must have seen the request."""
    with database.connect("app", autocommit=True) as app:
        waiting = threading.Thread(target=app.execute, args=("call pgtrickle.refresh_and_wait('s', '30 s')",))
        waiting.start()
        while not requested(connection):
            connection.commit()
        commit_refresh(connection, ONE, refreshed(connection))
        connection.commit()
        waiting.join()
    assert requested(connection) == frozenset()


def test_a_waiting_function_gets_its_answer(connection, database):
    with database.connect("app") as app:
        waiting = threading.Thread(target=app.execute, args=("select pgtrickle.refresh_stream_table('s')",))
        waiting.start()
        while not requested(connection):
            connection.commit()
        commit_refresh(connection, ONE, refreshed(connection))
        connection.commit()
        waiting.join()
        assert app.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS


def test_waiting_raises_what_went_wrong(connection, database):
    said: list[str] = []

    def wait(statement: str) -> None:
        with database.connect("app", autocommit=True) as app:
            try:
                app.execute(statement)
            except psycopg.Error as error:
                said.append(str(error.diag.message_primary))

    for statement in (
        "call pgtrickle.refresh_and_wait('s', '30 s')",
        "select pgtrickle.refresh_stream_table('s')",
    ):
        waiting = threading.Thread(target=wait, args=(statement,))
        waiting.start()
        while not requested(connection):
            connection.commit()
        record_failure(
            connection,
            ONE,
            "division by zero",
            action=Action.FULL,
            started_at=datetime.now(UTC),
            delays=DELAYS,
        )
        connection.commit()
        waiting.join()
    assert said == ["refresh of s failed: division by zero"] * 2


def test_an_error_without_remedy_is_not_tried_again(connection):
    mark_error(connection, ONE, "table public.orders was dropped")
    row = connection.execute("select status, retry_at from pgtrickle.pgt_stream_tables").fetchone()
    assert row == ("ERROR", None)


def test_history_is_bounded(connection):
    connection.execute(
        "insert into pgtrickle.pgt_refresh_history"
        " (pgt_id, start_time, end_time, action, status, duration_ms, initiated_by)"
        " select 1, now(), now() - case when n < 5 then interval '8 days' else interval '0' end,"
        " 'FULL', 'COMPLETED', 1, 'scheduler' from generate_series(1, 1104) n"
    )
    assert prune_history(connection) == 104
    assert prune_history(connection) == 0


def test_the_evidence_of_repairs_is_bounded_and_their_number_stays(connection):
    for _ in range(120):
        note_repair(connection, ONE, Cause.DIVERGED, "a reason", "test", ["1 x (1) expected, found 0"])
    connection.execute("update pgtrickle.pgt_repairs set found_at = now() - interval '91 days'")
    for _ in range(2):
        note_repair(connection, ONE, Cause.VERIFIED, "a reason", "test")
    tidy(connection)
    found = connection.execute("select cause from pgtrickle.pgt_repairs").fetchall()
    assert found == [("verified",)] * 2
    for _ in range(120):
        note_repair(connection, ONE, Cause.DIVERGED, "a reason", "test")
    assert prune_repairs(connection) == 22
    connection.execute("update pgtrickle.pgt_repairs set found_at = now() - interval '91 days'")
    assert prune_repairs(connection) == 99
    assert connection.execute("select repairs from pgtrickle.pgt_stream_tables").fetchall() == [(242,)]
