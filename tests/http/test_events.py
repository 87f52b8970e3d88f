"""Server-sent events: what happens is told at once, in order, and a lost connection is continued."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any

import httpx
import pytest

from pgtrickle.commands.run import RefreshEvent
from pgtrickle.interfaces.http import event_hub, models
from pgtrickle.interfaces.http.observer import Observer
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome
from tests.fixtures.waiting import eventually, quickest
from tests.http.conftest import plain_client

SALES = RelationName("public", "sales")


@dataclass(frozen=True, slots=True)
class Told:
    """One event as a client gets it."""

    id: str
    kind: str
    data: Any


def told(lines: Iterator[str]) -> Iterator[Told]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Told(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def listening(api: Any, path: str = "/events", **headers: str) -> Iterator[Iterator[Told]]:
    with (
        plain_client() as client,
        client.stream("GET", f"{api.server.url}api/v1{path}", headers=headers) as stream,
    ):
        assert stream.status_code == 200, stream.read()
        yield told(stream.iter_lines())


def refreshed(rows: int = 1, milliseconds: float = 5.0, name: RelationName = SALES) -> RefreshEvent:
    outcome = RefreshOutcome(name, Action.DIFFERENTIAL, rows, 0, milliseconds, "because row (hush)")
    return RefreshEvent(name, datetime.now(UTC), outcome=outcome)


def test_a_client_is_greeted_and_told_of_a_refresh_at_once(api, shop):
    api.get("/overview")
    with listening(api) as events:
        hello = next(events)
        assert (hello.kind, set(hello.data)) == ("hello", {"version", "at"})
        numbers = count()

        def tell() -> None:
            rows = next(numbers)
            api.server.note(refreshed(rows))
            event = next(event for event in events if event.kind == "refresh")
            found = models.Refresh.model_validate(event.data)
            assert (found.name, found.action, found.rows_inserted) == ("public.sales", "DIFFERENTIAL", rows)
            assert found.reason is None

        assert quickest(tell, times=20) < 0.05


def test_the_state_of_a_stream_table_follows_its_refreshes(api, shop):
    api.get("/overview")
    with listening(api) as events:
        api.server.note(refreshed(7))
        row = models.TableRow.model_validate(next(e for e in events if e.kind == "table").data)
        assert (row.name, row.state, row.pending_changes) == ("public.sales", "fresh", 0)
        assert row.last is not None
        assert row.last.rows_inserted == 7
        assert row.recent[-1] == (5.0, "D")


def test_counts_are_told_when_they_change(api, shop):
    api.get("/overview")
    with listening(api) as events:
        api.server.note(refreshed())
        counts = next(event for event in events if event.kind == "counts").data
        assert (counts["counts"]["fresh"], counts["counts"]["initializing"]) == (1, 1)


def test_a_failure_is_told_and_its_text_only_with_the_token(api, shop):
    api.get("/overview")
    failed = RefreshEvent(SALES, datetime.now(UTC), error=RefreshFailed("row (hush)"))
    with listening(api) as events, listening(api, **api.bearer) as trusted:
        next(events), next(trusted)
        api.server.note(failed)
        public = models.Refresh.model_validate(next(e for e in events if e.kind == "refresh").data)
        full = models.Refresh.model_validate(next(e for e in trusted if e.kind == "refresh").data)
        assert (public.status, public.error, public.reason) == ("FAILED", None, None)
        assert "row (hush)" in (full.error or "")
        assert next(e for e in events if e.kind == "table").data["error"] is None
        row = next(e for e in trusted if e.kind == "table").data
        assert (row["state"], "row (hush)" in row["error"]) == ("failing", True)


def test_many_refreshes_of_one_table_are_few_states(api, shop):
    api.get("/overview")
    with listening(api) as events:
        for rows in range(100):
            api.server.note(refreshed(rows))
        seen = []
        for event in events:
            seen.append(event)
            if event.kind == "table" and event.data["last"]["rows_inserted"] == 99:
                break
        assert [e.data["rows_inserted"] for e in seen if e.kind == "refresh"] == list(range(100))
        assert len([e for e in seen if e.kind == "table"]) <= 5


def test_what_others_create_change_and_drop_is_told(api, shop, app):
    api.get("/overview")
    with listening(api) as events:
        next(events)
        app.execute("select pgtrickle.alter_stream_table('big', status => 'SUSPENDED')")
        app.execute("select pgtrickle.create_stream_table('more', 'select id from orders', '1s', 'FULL')")
        app.commit()
        named = {e.data["name"]: e.data["state"] for e in islice(_tables(events), 2)}
        assert named == {"public.big": "suspended", "public.more": "initializing"}
        app.execute("select pgtrickle.drop_stream_table('more')")
        app.commit()
        assert next(e for e in events if e.kind == "removed").data == {"name": "public.more"}


def _tables(events: Iterator[Told]) -> Iterator[Told]:
    return (event for event in events if event.kind == "table")


def test_refreshes_of_other_sidecars_are_told_once(api, shop, admin):
    api.get("/overview")
    with listening(api) as events:
        next(events)
        admin.execute(
            "insert into pgtrickle.pgt_refresh_history (pgt_id, start_time, end_time, action, status,"
            " rows_inserted, duration_ms, initiated_by)"
            " select pgt_id, now(), now(), 'FULL', 'COMPLETED', n, 12.5, 'scheduler'"
            " from pgtrickle.pgt_stream_tables, generate_series(1, 2) n where pgt_name = 'sales'"
        )
        found = [next(e for e in events if e.kind == "refresh").data["rows_inserted"] for _ in range(2)]
        assert found == [1, 2]
        api.server.note(refreshed(9))
        assert next(e for e in events if e.kind == "refresh").data["rows_inserted"] == 9
        assert api.row("public.sales")["recent"][-3:-1] == [[12.5, "F"], [12.5, "F"]]


def test_a_refresh_of_this_process_is_not_told_again_by_the_history(api, served):
    with listening(api) as events:
        next(events)
        served.change("insert into orders values (9, 'west', 3)")
        kinds = [(e.data["name"], e.data["action"]) for e in islice(_refreshes(events), 2)]
        assert sorted(kinds) == [("public.big", "FULL"), ("public.sales", "FULL")]
        eventually(lambda: api.row("public.sales")["last"]["refresh_id"] is not None)
        api.server.note(refreshed(77))
        assert next(_refreshes(events)).data["rows_inserted"] == 77


def test_a_refresh_that_the_history_shows_before_its_event_arrives_is_told_once(api, shop, admin):
    api.get("/overview")
    with listening(api) as events:
        next(events)
        admin.execute(
            "insert into pgtrickle.pgt_refresh_history (pgt_id, start_time, end_time, action, status,"
            " rows_inserted, duration_ms, initiated_by)"
            " select pgt_id, now(), now(), 'DIFFERENTIAL', 'COMPLETED', 5, %s, 'scheduler'"
            " from pgtrickle.pgt_stream_tables where pgt_name = 'sales'",
            (5.0,),
        )
        assert next(_refreshes(events)).data["rows_inserted"] == 5
        api.server.note(refreshed(5))
        api.server.note(refreshed(6))
        assert next(_refreshes(events)).data["rows_inserted"] == 6


def _refreshes(events: Iterator[Told]) -> Iterator[Told]:
    return (event for event in events if event.kind == "refresh")


def test_only_the_tables_that_are_asked_for_are_told(api, shop):
    api.get("/overview")
    with listening(api, '/events?tables=public.other,public."a,b",public.big') as events:
        next(events)
        api.server.note(refreshed(1))
        api.server.note(refreshed(2, name=RelationName("public", "big")))
        api.server.note(refreshed(3, name=RelationName("public", "a,b")))
        found = [next(_refreshes(events)).data["rows_inserted"] for _ in range(2)]
        assert found == [2, 3]


def test_a_lost_connection_is_continued(api, shop):
    with listening(api) as events:
        next(events)
        api.server.note(refreshed(1))
        last = next(_refreshes(events)).id
    for rows in (2, 3):
        api.server.note(refreshed(rows))
    with listening(api, **{"Last-Event-ID": last}) as events:
        assert next(events).kind == "hello"
        assert [next(_refreshes(events)).data["rows_inserted"] for _ in range(2)] == [2, 3]


@pytest.mark.parametrize("last", ["other.5", "nonsense", "-1", "9" * 500])
def test_a_client_that_cannot_be_continued_has_to_start_over(api, shop, last):
    with listening(api, **{"Last-Event-ID": last}) as events:
        assert [next(events).kind, next(events).kind] == ["hello", "resync"]


def test_a_client_that_missed_too_much_has_to_start_over(api, shop, monkeypatch):
    with listening(api) as events:
        first = next(events).id
    for rows in range(event_hub.KEPT_EVENTS + 10):
        api.server.note(refreshed(rows))
    context = api.server.context
    eventually(lambda: int(context.hub.position().partition(".")[2]) > event_hub.KEPT_EVENTS)
    with listening(api, **{"Last-Event-ID": first}) as events:
        assert [next(events).kind, next(events).kind] == ["hello", "resync"]


def test_a_client_that_does_not_read_holds_up_nobody(api, shop):
    port = api.server.address.port
    with socket.create_connection(("127.0.0.1", port)) as deaf, listening(api) as events:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: len(api.server.context.hub._listeners) == 2)
        next(events)
        for batch in range(40):
            for rows in range(400):
                api.server.note(refreshed(rows, milliseconds=batch))
            next(e for e in events if e.kind == "resync" or e.data.get("rows_inserted") == 399)
        began = time.monotonic()
        assert api.get("/overview").status_code == 200
        # it would wait for the deaf one, which never reads
        assert time.monotonic() - began < 20
        deaf_one = next(one for one in api.server.context.hub._listeners if len(one.waiting) > 10)
        assert len(deaf_one.waiting) <= event_hub.QUEUED_EVENTS
    eventually(lambda: not api.server.context.hub.has_listeners)


def test_listeners_are_limited(api, monkeypatch):
    monkeypatch.setattr(event_hub, "MOST_LISTENERS", 1)
    with listening(api) as events:
        next(events)
        refused = api.get("/events")
        assert (refused.status_code, refused.json()["code"]) == (503, "PGT-H009")


def test_a_quiet_stream_shows_that_it_lives(api, monkeypatch):
    monkeypatch.setattr(event_hub, "HEARTBEAT_SECONDS", 0.05)
    with plain_client() as client, client.stream("GET", f"{api.server.url}api/v1/events") as stream:
        assert "event: alive" in stream.iter_lines()


def test_a_stream_ends_with_the_session_that_opened_it(api, monkeypatch):
    monkeypatch.setattr(event_hub, "HEARTBEAT_SECONDS", 0.05)
    same = {"Sec-Fetch-Site": "same-origin"}
    api.post("/session", {"token": api.token}, token=False, headers=same)
    cookies = dict(api.client.cookies)
    with (
        plain_client(cookies=cookies) as client,
        client.stream("GET", f"{api.server.url}api/v1/events", headers=same) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        api.send("DELETE", "/session", token=False, headers=same)
        # the stream ends, so the loop does
        assert all(not line.startswith("event: refresh") for line in lines)


def test_stopping_the_server_ends_streams_in_time(serve):
    api = serve()
    with listening(api) as events:
        next(events)
        began = time.monotonic()
        api.server.stop()
        assert time.monotonic() - began < 5
        with pytest.raises((StopIteration, httpx.HTTPError)):
            next(events)


def test_nobody_who_watches_means_no_statement(serve, shop, admin, monkeypatch):
    monkeypatch.setattr("pgtrickle.interfaces.http.observer.INTEREST_SECONDS", 0.3)
    api = serve()
    observer = api.server.context.observer
    assert api.get("/overview").status_code == 200
    eventually(lambda: not observer._is_watched())
    eventually(lambda: time.monotonic() > observer._next_read)
    wake(observer)
    before = observer._version
    for _ in range(5):
        wake(observer)
    assert observer._version == before


def wake(observer: Observer) -> None:
    """Let the observer look around; what it did before has ended when it takes the message."""
    observer._inbox.put(None)
    eventually(lambda: observer._inbox.empty())
