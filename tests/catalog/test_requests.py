"""Requests to a sidecar: who may make them, what their answers say, and what fails at once."""

from __future__ import annotations

import time

import psycopg
import pytest

from pgtrickle.catalog.claims import claim
from pgtrickle.catalog.outcomes import Refreshed, commit_refresh
from pgtrickle.catalog.requests import (
    Answer,
    UserRequest,
    answer_of,
    answer_refused,
    answer_request,
    askable_tables,
    give_back_request,
    is_served,
    request_comparison,
    request_refresh,
    take_request,
)
from pgtrickle.model.error_json import error_from_json
from pgtrickle.model.errors import Diverged, PgTrickleError, RefreshFailed
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, StreamTableId
from pgtrickle.postgres.connection import connect as connect_pinned
from pgtrickle.scheduler.service.poll import poll
from pgtrickle.scheduler.service.vitals import Vitals, publish, withdraw

pytestmark = pytest.mark.every_postgres

TABLE = StreamTableId(1)


@pytest.fixture(autouse=True)
def totals(source, app):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('totals', 'select sum(amount) as total from orders')")


@pytest.fixture
def owner(database):
    """The owner of the stream table, who did not install pgtrickle and cannot read its tables."""
    with connect_pinned(database.dsn("app"), autocommit=True) as connection:
        yield connection


def answer(connection: psycopg.Connection, request: int) -> Answer:
    found = answer_of(connection, request)
    assert found is not None
    return found


def error_in(found: Answer) -> PgTrickleError:
    assert found.content is not None
    return error_from_json(found.content["error"])


def taken(connection: psycopg.Connection, vitals: Vitals) -> UserRequest:
    found = take_request(connection, "verify", vitals.id)
    assert found is not None
    return found


def report(connection: psycopg.Connection, vitals: Vitals) -> None:
    publish(connection, vitals, workers=1, busy=0, queued=0, more={})
    connection.commit()


def refused(connection: psycopg.Connection, statement: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(statement)
    return refusal.value


@pytest.mark.parametrize(
    "call", ["select pgtrickle.refresh_stream_table('totals')", "call pgtrickle.refresh_and_wait('totals')"]
)
def test_a_refresh_of_a_suspended_table_fails_at_once_with_the_stored_error(app, admin, call):
    admin.execute(
        "update pgtrickle.pgt_stream_tables set status = 'SUSPENDED', last_error = 'PGT-R003: too many cooks'"
    )
    began = time.monotonic()
    error = refused(app, call)
    assert time.monotonic() - began < 3
    assert error.sqlstate == "TS010"
    assert error.diag.message_primary == "stream table public.totals is suspended: PGT-R003: too many cooks"
    hint = "Resume it with: select pgtrickle.resume_stream_table('public.totals')."
    assert error.diag.message_hint == hint
    assert admin.execute("select count(*) from pgtrickle.pgt_refresh_requests").fetchone() == (0,)


@pytest.mark.parametrize(
    "call", ["select pgtrickle.refresh_stream_table('totals')", "call pgtrickle.refresh_and_wait('totals')"]
)
def test_without_a_sidecar_a_refresh_soon_says_since_when_there_is_none(app, connection, call):
    vitals = Vitals()
    report(connection, vitals)
    withdraw(connection, vitals)
    connection.execute("update pgtrickle.pgt_last_sidecar set seen_at = '2025-01-02 03:04:05Z'")
    connection.commit()
    began = time.monotonic()
    error = refused(app, call)
    assert 3 <= time.monotonic() - began < 30
    assert error.sqlstate == "57P03"
    assert error.diag.message_primary == (
        "stream table public.totals was not refreshed: no sidecar serves this database;"
        " the last one was seen at 2025-01-02 03:04:05 UTC"
    )
    assert error.diag.message_hint == "Start one with: pgtrickle run."


def test_a_timeout_says_what_becomes_of_the_request(app, connection):
    report(connection, Vitals())
    connection.commit()
    stored = refused(app, "call pgtrickle.refresh_and_wait('totals', '10 ms')")
    assert stored.diag.message_primary == "stream table public.totals was not refreshed within 00:00:00.01"
    assert stored.diag.message_hint == "The request is stored: the refresh still happens."
    assert poll(connection, None, has_views=False).requested == {TABLE}
    connection.execute("delete from pgtrickle.pgt_refresh_requests")
    connection.commit()
    app.execute("set pgtrickle.wait_timeout = '10 ms'")
    gone = refused(app, "select pgtrickle.refresh_stream_table('totals')")
    assert str(gone.diag.message_hint).startswith("The request ends with this call")
    assert poll(connection, None, has_views=False).requested == frozenset()


def test_a_timeout_names_the_failure_that_is_retried_later(app, connection):
    report(connection, Vitals())
    connection.execute(
        "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = 'PGT-R003: out of luck',"
        " retry_at = '2030-01-02 03:04:05Z'"
    )
    connection.commit()
    late = refused(app, "call pgtrickle.refresh_and_wait('totals', '10 ms')")
    assert late.diag.message_detail == (
        "The last attempt failed, and the next one is at 2030-01-02 03:04:05 UTC: PGT-R003: out of luck"
    )


def test_a_sidecar_serves_from_its_first_report_until_it_withdraws(owner, connection):
    assert not is_served(owner)
    vitals = Vitals()
    report(connection, vitals)
    connection.commit()
    assert is_served(owner)
    connection.execute("update pgtrickle.pgt_sidecars set seen_at = now() - interval '1 min'")
    connection.commit()
    assert not is_served(owner)
    withdraw(connection, vitals)
    connection.commit()
    seen = owner.execute("select now() - pgtrickle_internal.sidecar_seen() < interval '1 min'")
    assert seen.fetchone() == (True,)


def test_the_owner_who_cannot_read_the_catalog_asks_and_gets_the_outcome(owner, connection):
    request = request_refresh(owner, TABLE)
    assert answer(owner, request).is_answered is False
    row = connection.execute("select pg_current_snapshot()::text, clock_timestamp()").fetchone()
    claim(connection, TABLE, wait=True)
    seen = Frontier.parse(row[0])
    commit_refresh(
        connection,
        TABLE,
        Refreshed(Action.FULL, row[1], row[1], seen, None, 3, 2, reason="why", milliseconds=1.5),
    )
    connection.commit()
    found = answer(owner, request)
    assert (found.is_answered, found.error_message) == (True, None)
    assert found.content == {
        "action": "FULL",
        "rows_inserted": 3,
        "rows_deleted": 2,
        "milliseconds": 1.5,
        "reason": "why",
        "read_ms": None,
        "compute_ms": None,
        "apply_ms": None,
    }


def test_an_error_arrives_with_its_class_code_and_hint(owner, connection):
    request, comparison = request_refresh(owner, TABLE), request_comparison(owner, TABLE, 5.0)
    answer_refused(connection, (TABLE,), RefreshFailed("it broke", hint="mend it"))
    connection.commit()
    error = error_in(answer(owner, request))
    assert (type(error), error.code, error.message, error.hint) == (
        RefreshFailed,
        RefreshFailed.code,
        "it broke",
        "mend it",
    )
    assert answer(owner, comparison).is_answered is False


def test_rows_that_differ_travel_with_the_error(owner, connection):
    request = request_comparison(owner, TABLE, None)
    assert poll(connection, None, has_views=False).has_comparisons
    found = taken(connection, Vitals())
    assert (found.id, found.table, found.seconds) == (request, TABLE, None)
    content = {
        "error": {"class": "Diverged", "code": "", "message": "not equal", "hint": None, "rows": ["+ (1)"]}
    }
    answer_request(connection, request, content)
    connection.commit()
    error = error_in(answer(owner, request))
    assert isinstance(error, Diverged)
    assert error.rows == ("+ (1)",)
    assert not poll(connection, None, has_views=False).has_comparisons


def test_a_comparison_is_taken_by_one_sidecar_until_that_is_gone(owner, connection):
    request = request_comparison(owner, TABLE, None)
    first, second = Vitals(), Vitals()
    report(connection, first)
    assert taken(connection, first).id == request
    assert take_request(connection, "verify", second.id) is None
    assert not poll(connection, None, has_views=False).has_comparisons
    withdraw(connection, first)
    assert poll(connection, None, has_views=False).has_comparisons
    assert taken(connection, second).id == request
    report(connection, second)
    give_back_request(connection, request)
    assert taken(connection, first).id == request


def test_members_of_the_owner_and_the_sidecar_may_ask_and_nobody_else(database, admin, owner, connection):
    admin.execute("update pgtrickle.pgt_stream_tables set is_populated = true")
    for role in ("clerk", "stranger"):
        admin.execute(f"drop role if exists {role}")
        admin.execute(f"create role {role} login password '{database.server.password}'")
    try:
        admin.execute("grant app to clerk")
        for role, may_ask in (("clerk", True), ("trickle", True), ("stranger", False)):
            with connect_pinned(database.dsn(role), autocommit=True) as session:
                assert askable_tables(session) == ([TABLE] if may_ask else [])
                if may_ask:
                    assert answer(owner, request_refresh(session, TABLE)).is_answered is False
                    continue
                for statement in (
                    "select pgtrickle_internal.request_refresh(1)",
                    "select pgtrickle_internal.request_comparison(1, 5)",
                    "insert into pgtrickle_internal.own_requests (pgt_id, kind) values (1, 'verify')",
                ):
                    assert refused(session, statement).sqlstate in ("42501", "44000")
                assert answer_of(session, 1) is None
    finally:
        admin.execute("revoke app from clerk")
        for role in ("clerk", "stranger"):
            admin.execute(f"drop role {role}")


@pytest.mark.parametrize("seconds", ["0", "-1", "'nan'", "'infinity'"])
def test_a_comparison_has_a_sensible_limit(owner, seconds):
    statement = f"select pgtrickle_internal.request_comparison(1, {seconds}::double precision)"
    assert refused(owner, statement).sqlstate == "23514"
