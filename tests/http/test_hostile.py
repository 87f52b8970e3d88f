"""What hostile clients send is refused, costs little, and shows nothing that is not theirs."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from pgtrickle.commands.run import RefreshEvent
from pgtrickle.interfaces.http import connections
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.names import RelationName
from tests.fixtures.waiting import eventually
from tests.http.test_events import listening

SALES = RelationName("public", "sales")
HUSH = "the row (hush) is wrong"


def raw(api, text: str) -> str:
    """What the server answers to bytes that no client library would send."""
    with socket.create_connection(("127.0.0.1", api.server.address.port), timeout=10) as client:
        client.sendall(text.encode("latin-1"))
        answer = b""
        while b"\r\n\r\n" not in answer and (part := client.recv(65536)):
            answer += part
    return answer.decode("latin-1")


@pytest.mark.parametrize(
    "host",
    [
        "localhost?",
        "localhost#",
        "localhost\\",
        "localhost:80:80",
        "localhost:x",
        "[::1",
        "::1",
        "localhost.",
    ],
)
def test_a_host_that_is_no_name_is_refused(api, host):
    answer = raw(api, f"GET /api/v1/overview HTTP/1.1\r\nHost: {host}\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 400"))


@pytest.mark.parametrize("host", ["evil/healthz?", "evil/healthz#", "localhost/healthz?"])
def test_a_host_does_not_make_another_path_of_a_request(api, host):
    request = f"GET /api/v1/overview HTTP/1.1\r\nHost: {host}\r\n\r\n"
    assert "does not answer for the name" in whole(api, request)


def test_a_request_without_a_host_is_refused(api):
    token = f"Authorization: Bearer {api.token}\r\nOrigin: http://evil.example\r\n"
    assert raw(api, f"GET /api/v1/overview HTTP/1.0\r\n{token}\r\n")[9:12] == "403"
    assert raw(api, "GET /api/v1/overview HTTP/1.0\r\n\r\n")[9:12] == "403"


def whole(api, request: str) -> str:
    """The whole answer to a request, after which the connection is closed."""
    with socket.create_connection(("127.0.0.1", api.server.address.port), timeout=10) as client:
        client.sendall(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode("latin-1"))
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", "/events", {"headers": {"Last-Event-ID": "{hub}." + "9" * 5000}}),
        ("GET", "/tables/sales/changes/stream", {"headers": {"Last-Event-ID": "9" * 5000}}),
        ("GET", "/tables/%00", {}),
        ("GET", "/tables/a%00b/history", {}),
        ("GET", "/tables/%0aFAKE%20LINE", {}),
        ("GET", "/tables/%ff", {}),
        ("GET", "/tables/%ed%a0%80", {}),
        ("GET", "/tables/x/rows?limit=" + "9" * 5000, {}),
        ("GET", "/timeline?since=9999-12-31T23:59:59-23:00", {}),
        ("GET", "/alerts?since=0001-01-01T00:00:00%2B23:00", {}),
        ("POST", "/validate", {"content": b'{"query": "select \\u0000"}'}),
        ("POST", "/validate", {"content": b'{"query": "select 1", "owner": "\\u0000"}'}),
        ("POST", "/validate", {"content": b'{"query": "select \\ud800"}'}),
        ("POST", "/validate", {"content": b"[" * 200_000}),
        ("POST", "/tables", {"content": b'{"name": "\\u0000", "query": "select 1"}'}),
        ("POST", "/tables", {"content": b'{"name": "a.b", "query": "select 1", "schedule": "\\u0000"}'}),
        (
            "POST",
            "/bulk-create",
            {"content": b'{"definitions": [{"name": "x\\u0000", "query": "select 1"}]}'},
        ),
        ("POST", "/session", {"content": b'{"token": "\\ud800"}'}),
        ("POST", "/session", {"content": b'{"code": "\\u0000"}'}),
        ("POST", "/sources/%00/gate", {}),
        ("PATCH", "/tables/%00", {"content": b'{"schedule": "1s"}'}),
        ("DELETE", "/tables/%00", {}),
    ],
)
def test_values_that_make_no_sense_are_refused_and_not_an_error_of_the_server(
    api, shop, caplog, method, path, more
):
    api.get("/overview")
    headers = {"Content-Type": "application/json", "X-Pgtrickle": "1", **more.pop("headers", {})}
    headers = {key: value.replace("{hub}", api.server.context.hub.name) for key, value in headers.items()}
    with api.client.stream(method, f"/api/v1{path}", headers={**api.bearer, **headers}, **more) as answer:
        assert answer.status_code < 500, answer.read()
    assert caplog.text == ""


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 19, "-1", "1e3", "\xb2"])
def test_a_length_that_is_no_length_is_refused(api, length):
    request = f"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    assert raw(api, request)[9:12] in ("400", "413")


@pytest.fixture
def note_refresh(shop, admin) -> Callable[[], object]:
    """Adds a refresh to the history whose reason quotes data."""
    return lambda: admin.execute(
        "insert into pgtrickle.pgt_refresh_history (pgt_id, start_time, end_time, action, status, reason,"
        " duration_ms, initiated_by)"
        " select pgt_id, now(), clock_timestamp(), 'FULL', 'COMPLETED', %s, 1, 'test'"
        " from pgtrickle.pgt_stream_tables where pgt_name = 'sales'",
        (HUSH,),
    )


def test_the_reason_of_a_refresh_is_in_no_alert_without_the_token(api, note_refresh):
    note_refresh()
    assert HUSH in api.get("/alerts", token=True).text
    found = api.get("/alerts").json()
    assert "refresh_completed" in [alert["event"] for alert in found]
    assert HUSH not in str(found)


def test_the_reason_of_a_refresh_is_in_no_event_without_the_token(api, note_refresh):
    api.get("/overview")
    with listening(api) as events:
        next(events)
        note_refresh()
        alert = next(event for event in events if event.kind == "alert")
    assert alert.data["event"] == "refresh_completed"
    assert HUSH not in str(alert.data)


def test_a_role_of_its_own_sees_only_the_errors_that_are_for_it(serve, database, shop, admin):
    admin.execute("do $$ begin create role web login; exception when duplicate_object then null; end $$;")
    admin.execute(f"alter role web password '{database.server.password}'")
    api = serve(http_dsn=database.dsn("web"))
    admin.execute(
        "update pgtrickle.pgt_stream_tables set consecutive_errors = 1, status = 'ERROR', last_error = %s",
        (HUSH,),
    )
    api.get("/overview")
    with listening(api, **api.bearer) as events:
        next(events)
        api.server.note(RefreshEvent(SALES, datetime.now(UTC), error=RefreshFailed(HUSH)))
        event = next(event for event in events if event.kind == "refresh")
    assert event.data["status"] == "FAILED"
    assert HUSH not in str(event.data)
    for path in ("/overview", "/timeline", "/tables/public.sales", "/tables/public.sales/history", "/alerts"):
        answer = api.get(path, token=True)
        assert answer.status_code == 200
        assert HUSH not in answer.text, path
    # the role of the sidecar may see them
    assert HUSH in serve().get("/overview", token=True).text


def test_connections_without_a_request_are_closed(api, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    place = ("127.0.0.1", api.server.address.port)
    with (
        socket.create_connection(place, timeout=10) as silent,
        socket.create_connection(place, timeout=10) as slow,
    ):
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        assert silent.recv(1) == b""
        assert slow.recv(1) == b""


def test_a_connection_that_drips_the_body_of_an_answered_request_is_closed(api, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", api.server.address.port), timeout=10) as client:
        client.sendall(
            b"POST /api/v1/validate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"
        )
        assert b" 401 " in client.recv(65536)
        client.sendall(b"{")
        eventually(lambda: drip(client))


def drip(client: socket.socket) -> bool:
    """Send one more byte; whether the server has closed the connection."""
    try:
        client.sendall(b"{")
    except ConnectionError:
        return True
    return is_closed(client)


def test_more_connections_than_allowed_are_closed_at_once(api, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    place = ("127.0.0.1", api.server.address.port)
    with ExitStack() as opened:
        clients = [opened.enter_context(socket.create_connection(place, timeout=1)) for _ in range(12)]
        eventually(lambda: sum(map(is_closed, clients)) >= 6)
    eventually(lambda: api.get("/healthz").status_code == 200)


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0.01)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
