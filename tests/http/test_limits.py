"""Bodies, results and answers are limited, and every error is a problem with a code."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading

import psycopg
import pytest

from pgtrickle.interfaces.http.command_pool import MOST_WAITING, CommandPool
from pgtrickle.interfaces.http.guard import MOST_BODY_BYTES
from pgtrickle.interfaces.http.problems import MEDIA_TYPE, Problem
from pgtrickle.model.errors import HttpUnavailable
from pgtrickle.model.http_settings import HttpAddress
from tests.fixtures.waiting import eventually


def problem(answer) -> Problem:
    assert answer.headers["Content-Type"] == MEDIA_TYPE, answer.text
    found = Problem.model_validate(answer.json())
    assert found.status == answer.status_code
    return found


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/tables/nope", None, 404, "PGT-S002"),
        ("GET", "/tables/a.b.c.d", None, 422, "PGT-S013"),
        ("GET", "/nothing", None, 404, "PGT-H006"),
        ("PUT", "/tables", None, 405, "PGT-H007"),
        ("POST", "/tables", {"name": "x"}, 422, "PGT-H008"),
        ("POST", "/tables", {"name": "x", "query": "select 1", "color": 1}, 422, "PGT-H008"),
        ("POST", "/tables", {"name": "x", "query": "select 1", "schedule": "soon"}, 422, "PGT-S003"),
        ("POST", "/tables", {"name": "x", "query": "select 1", "tier": "warmish"}, 422, "PGT-S011"),
        ("POST", "/validate", {"query": "delete from pg_class"}, 422, "PGT-P003"),
        ("POST", "/validate", {"query": "select 1", "refresh_mode": "odd"}, 422, "PGT-S011"),
        ("GET", "/timeline?limit=0", None, 422, "PGT-H008"),
        ("GET", "/timeline?limit=100000", None, 422, "PGT-H008"),
        ("GET", "/timeline?since=yesterday", None, 422, "PGT-H008"),
        ("GET", "/tables/x/rows?limit=1000", None, 422, "PGT-H008"),
        ("POST", "/sources/nope/gate", None, 404, "PGT-S022"),
        ("POST", "/tables/nope/refresh", None, 404, "PGT-S002"),
    ],
)
def test_each_kind_of_error_has_its_code(api, method, path, body, status, code):
    found = problem(api.send(method, path, json=body))
    assert (found.status, found.code) == (status, code)
    assert found.hint
    assert found.type.startswith(f"ERRORS.md#{code.lower()}-")


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b"null", b"{}" * 3, b""])
def test_a_body_that_is_not_json_is_refused(api, content):
    answer = api.send("POST", "/tables", content=content, headers={"Content-Type": "application/json"})
    assert problem(answer).code == "PGT-H008"


def test_a_body_that_is_too_large_is_refused(api):
    large = json.dumps({"query": "x" * MOST_BODY_BYTES})
    assert problem(api.send("POST", "/validate", content=large)).code == "PGT-H005"


def test_a_large_body_of_unknown_length_is_refused(api):
    def parts():
        for _ in range(20):
            yield b"x" * 100_000

    answer = api.send("POST", "/validate", content=parts(), headers={"Content-Type": "application/json"})
    assert problem(answer).code == "PGT-H005"


def test_a_body_is_not_read_before_the_token_was_checked(api):
    port = api.server.address.port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(
            b"POST /api/v1/validate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900000\r\n\r\n{"
        )
        assert b" 401 " in client.recv(1000)


def test_an_error_that_nobody_expected_shows_nothing_of_the_code(api, monkeypatch, caplog):
    def fail(*_, **__):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("pgtrickle.interfaces.http.snapshot.Snapshot.body", fail)
    with caplog.at_level(logging.ERROR):
        found = problem(api.get("/overview"))
    assert (found.status, found.code) == (500, "PGT-X000")
    assert "secret" not in found.model_dump_json()
    assert "ZeroDivisionError" in caplog.text


def test_without_its_database_the_api_says_so_and_recovers(serve, database, admin):
    api = serve()
    assert api.get("/overview").status_code == 200
    name = psycopg.sql.Identifier(database.name)
    with psycopg.connect(database.server.dsn(), autocommit=True) as other:
        other.execute(psycopg.sql.SQL("alter database {} allow_connections false").format(name))
        try:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = %s and usename = 'trickle'",
                (database.name,),
            )
            eventually(lambda: api.get("/overview").status_code == 503)
            assert problem(api.get("/overview")).code == "PGT-C001"
            assert problem(api.get("/capture")).code == "PGT-C001"
            assert api.get("/healthz").status_code == 200
            eventually(
                lambda: "cannot connect" in api.get("/readyz").json()["checks"]["database"], seconds=30
            )
            assert api.get("/readyz").status_code == 503
            assert database.server.password not in api.get("/readyz").text
        finally:
            other.execute(psycopg.sql.SQL("alter database {} allow_connections true").format(name))
    eventually(lambda: api.get("/overview").status_code == 200)


def test_without_an_installation_the_api_says_so(serve, database, admin):
    api = serve()
    admin.execute("drop schema pgtrickle cascade; drop schema pgtrickle_internal cascade")
    answer = problem(api.get("/overview"))
    assert (answer.status, answer.code) == (409, "PGT-C004")
    assert "not installed" in api.get("/readyz").json()["checks"]["installation"]


def test_a_port_that_is_taken_is_reported_at_once(api, serve):
    with pytest.raises(HttpUnavailable, match=r"cannot listen on 127.0.0.1:\d+: Address already in use"):
        serve(http=HttpAddress("127.0.0.1", api.server.address.port))


def test_no_more_commands_wait_than_the_pool_holds(api):
    release = threading.Event()
    pool = CommandPool("test", 30.0, threads=1)
    api.server.context.reads = pool

    async def fill() -> object:
        running = [asyncio.create_task(pool.run(release.wait, 20)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        try:
            return (await asyncio.gather(pool.run(int), return_exceptions=True))[0]
        finally:
            release.set()
            await asyncio.gather(*running)

    assert getattr(asyncio.run(fill()), "code", None) == "PGT-H009"
    pool.close()


def test_a_command_that_takes_too_long_goes_on_without_its_client():

    release, done = threading.Event(), threading.Event()
    pool = CommandPool("test", 0.05, threads=1)

    def work() -> None:
        release.wait(20)
        done.set()

    async def ask() -> object:
        try:
            return (await asyncio.gather(pool.run(work), return_exceptions=True))[0]
        finally:
            release.set()

    refused = asyncio.run(ask())
    assert getattr(refused, "code", None) == "PGT-H010"
    assert done.wait(90)
    pool.close()
