"""`status` and `list` say when no sidecar serves the database, and since when."""

from __future__ import annotations

import json

import pytest

from pgtrickle.scheduler.service.vitals import Vitals, publish, withdraw
from tests.fixtures.databases import Database


@pytest.fixture(autouse=True)
def sales(source, cli):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    cli("create", "sales", "--query", "select sum(amount) as total from orders")


@pytest.fixture
def sidecar(database: Database):
    """What a sidecar reports about itself."""
    with database.connect(autocommit=True) as connection:
        vitals = Vitals()
        publish(connection, vitals, workers=1, busy=0, queued=0, more={})
        yield lambda: withdraw(connection, vitals)


def last_line(text: str) -> str:
    return " ".join(text.splitlines()[-1].split())


def test_a_database_that_was_never_served(cli):
    told = "No sidecar serves this database; none has been seen yet. Start one with `pgtrickle run`."
    assert last_line(cli("list").out) == told
    assert last_line(cli("status").out) == told
    assert "no sidecar serves this database; none has been seen yet" in cli("status", "sales").out


def test_a_database_that_is_served(sidecar, cli):
    for command in (("list",), ("status",), ("status", "sales")):
        assert "no sidecar" not in cli(*command).out.lower()
    assert json.loads(cli("status", "sales", "--json").out)["waits"] is None


def test_a_sidecar_that_has_stopped_was_last_seen_when_it_stopped(sidecar, cli, admin):
    sidecar()
    seen = admin.execute(
        "select to_char(seen_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS \"UTC\"')"
        " from pgtrickle.pgt_last_sidecar"
    ).fetchone()
    assert last_line(cli("list").out) == (
        f"No sidecar serves this database; the last one was seen at {seen[0]}."
        " Start one with `pgtrickle run`."
    )


def test_a_sidecar_that_died_was_last_seen_at_its_last_report(sidecar, cli, admin):
    admin.execute("update pgtrickle.pgt_sidecars set seen_at = '2026-01-02 03:04:05+00'")
    assert "the last one was seen at 2026-01-02 03:04:05 UTC" in last_line(cli("status").out)
