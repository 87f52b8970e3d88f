"""Locks tables without making an application fail: none of our locks can be part of a deadlock."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, DatabaseError, sql

LOCK_SECONDS: Final = 5.0
"""How long to retry before giving up."""
SHORT_LOCKS: Final = f"set local lock_timeout = '{LOCK_SECONDS}s'"
"""For statements that lock the tables they read: the same time limit."""
BRIEF_LOCKS: Final = "set local lock_timeout = '200ms'"
"""For loops over many tables: a locked table must not delay the others."""
ACCESS_SHARE: Final = sql.SQL("access share")
ROW_EXCLUSIVE: Final = sql.SQL("row exclusive")
SHARE: Final = sql.SQL("share")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2
_LOCK_NOT_AVAILABLE: Final = "55P03"
_CONTENTION: Final = frozenset({_LOCK_NOT_AVAILABLE, "40001", "40P01", "55006"})
_INTERNAL_ERROR: Final = "XX000"
_CONCURRENT_DDL: Final = ("tuple concurrently", "cache lookup failed", "could not open relation with OID")


def lock_tables(connection: Connection, tables: Iterable[RelationName], mode: sql.SQL) -> None:
    """Lock all tables at once, inside the transaction; raise SQLSTATE 55P03 if that takes too long.

    A session that waits for one lock while it holds another can complete a deadlock. PostgreSQL cancels the
    session that detects it, which may be the application's. So each attempt takes all locks or none, and
    holds nothing while it waits for the next one. An attempt is one message and takes no snapshot.
    """
    names = sql.SQL(", ").join(sql.Identifier(table.schema, table.name) for table in tables)
    attempt = sql.SQL("savepoint locks; lock table {} in {} mode nowait; release savepoint locks").format(
        names, mode
    )
    deadline, pause = time.monotonic() + LOCK_SECONDS, _FIRST_PAUSE
    while True:
        try:
            connection.execute(attempt)
            return
        except DatabaseError as error:
            if error.sqlstate != _LOCK_NOT_AVAILABLE or time.monotonic() > deadline:
                raise
        connection.execute("rollback to savepoint locks")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def is_contention(error: Exception) -> bool:
    """Whether a statement failed only because of concurrent sessions, so that a retry may succeed."""
    if not isinstance(error, DatabaseError):
        return False
    # PostgreSQL reports a catalog row that changes during our statement as an internal error
    return error.sqlstate in _CONTENTION or (
        error.sqlstate == _INTERNAL_ERROR and (error.diag.message_primary or "").startswith(_CONCURRENT_DDL)
    )
