"""Locks of ours never make an application wait for long, nor fail."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pgtrickle.model.names import RelationName
from pgtrickle.postgres import locking
from pgtrickle.postgres.locking import ACCESS_SHARE, is_contention, lock_tables
from pgtrickle.refresh.session import open_shareable
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.waiting import eventually

TABLES = (RelationName("public", "first"), RelationName("public", "second"))


@pytest.fixture
def two_tables(app):
    for table in TABLES:
        app.execute(f"create table {table.name} (id int)")
        app.execute(f"grant select on {table.name} to {TRICKLE}")


def held_locks(admin) -> int:
    row = admin.execute(
        "select count(*) from pg_locks l join pg_class c on c.oid = l.relation"
        " where c.relname in ('first', 'second') and l.mode = 'AccessShareLock' and granted"
    ).fetchone()
    return int(row[0])


def test_nothing_is_held_while_one_of_several_tables_is_locked(two_tables, connect, admin):
    writer, ours = connect(APP), connect(TRICKLE)
    writer.execute("lock table second in access exclusive mode")
    thread = threading.Thread(target=lock_tables, args=(ours, TABLES, ACCESS_SHARE))
    thread.start()
    # the application takes the table that we would hold; it neither waits nor meets a deadlock
    writer.execute("set lock_timeout = '2s'")
    writer.execute("lock table first in access exclusive mode")
    writer.commit()
    thread.join(90)
    assert held_locks(admin) == 2
    ours.rollback()


def test_a_table_that_stays_locked_is_given_up(two_tables, connect, admin, monkeypatch):
    monkeypatch.setattr(locking, "LOCK_SECONDS", 0.1)
    writer, ours = connect(APP), connect(TRICKLE)
    writer.execute("lock table second in access exclusive mode")
    with pytest.raises(psycopg.errors.LockNotAvailable) as caught:
        lock_tables(ours, TABLES, ACCESS_SHARE)
    assert is_contention(caught.value)
    writer.rollback()


def test_a_refresh_takes_its_snapshot_after_its_locks(two_tables, connect):
    writer, write, read = connect(APP), connect(TRICKLE), connect(TRICKLE)
    writer.execute("truncate first")
    started = threading.Event()

    def begin() -> None:
        started.set()
        open_shareable(write, read, TABLES)

    thread = threading.Thread(target=begin)
    thread.start()
    started.wait(90)
    # the refresh waits for the writer in a transaction of its own that has no snapshot yet
    eventually(lambda: read.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS)
    writer.execute("insert into first values (1)")
    writer.commit()
    thread.join(90)
    assert read.execute("select id from public.first").fetchall() == [(1,)]
    read.rollback()


def test_a_deadlock_is_contention_and_a_missing_table_is_not(connect, app):
    with pytest.raises(psycopg.Error) as caught:
        app.execute("select * from missing")
    assert not is_contention(caught.value)
    assert is_contention(psycopg.errors.DeadlockDetected())
