"""A process that decodes is killed, and another one goes on where it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from pgtrickle.capture.wal.capture import WalCapture
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.sidecars import running
from tests.fixtures.sources import Source
from tests.fixtures.waiting import eventually
from tests.wal.conftest import WalTable

KILLED = """
import os, signal, sys
from pgtrickle.capture.wal import buffer_rows, capture, store, stream_reader

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

step = sys.argv[2]
wal = capture.WalCapture(sys.argv[1], streams=step != "by SQL")
if step == "when the stream is open":
    stream_reader.StreamReader.read = die
elif step == "when rows were read":
    buffer_rows.BufferRows.flush = die
elif step == "when rows were written":
    store._note_touched = die
elif step in ("before the position", "by SQL"):
    store._store_position = die
elif step == "before the commit":
    original = store._store_position
    def write_and_die(*arguments):
        original(*arguments)
        die()
    store._store_position = write_and_die
elif step == "before the slot is told":
    stream_reader.StreamReader.confirm = die
wal.decode()
"""


@pytest.mark.parametrize(
    "step",
    [
        "when the stream is open",
        "when rows were read",
        "when rows were written",
        "before the position",
        "before the commit",
        "before the slot is told",
        "by SQL",
    ],
)
def test_a_killed_process_is_followed_by_another(
    full_source: Source, wal_table: WalTable, engine: Engine, dsn: str, step: str
) -> None:
    engine.wal.streams = True
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select sum(amount) as total, count(*) as n from orders")
    engine.wal.close()
    orders.change("insert into orders values (2, 2)")
    orders.change("insert into orders values (3, 3)", "update orders set amount = 10 where id = 1")
    killed = subprocess.run([sys.executable, "-c", KILLED, dsn, step], capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    orders.change("delete from orders where id = 2")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    orders.change("update orders set amount = amount + 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


@contextmanager
def holding(dsn: str) -> Iterator[WalCapture]:
    """Another session that holds the slot through a stream."""
    other = WalCapture(dsn, streams=True)
    try:
        other.decode()
        assert other.is_streaming, other.refusal
        yield other
    finally:
        other.close()


def test_a_session_that_holds_the_slot_and_does_nothing_is_ended(
    full_source: Source, wal_table: WalTable, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgtrickle.capture.wal.capture.OTHER_SECONDS", 0.2)
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select id, amount from orders")
    with holding(dsn):
        orders.change("insert into orders values (2, 2)")
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()


def test_a_refresh_asks_the_sidecar_that_holds_the_slot(
    full_source: Source, wal_table: WalTable, engine: Engine, dsn: str, admin: psycopg.Connection
) -> None:
    """The walsender stays the same: nobody takes the slot from a sidecar that answers."""
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select id, amount from orders")
    engine.wal.close()

    def reader() -> int | None:
        row = admin.execute("select active_pid from pg_replication_slots").fetchone()
        return row[0] if row else None

    other = Engine(dsn, engine.start_spark)
    try:
        with running(other):
            eventually(lambda: reader() is not None)
            before = reader()
            for number in range(2, 5):
                orders.change(f"insert into orders values ({number}, 2)", "update orders set amount = 5")
                assert table.refresh().action is Action.DIFFERENTIAL
                table.equals_its_query()
            assert reader() == before
    finally:
        other._spark = None
        other.close()
