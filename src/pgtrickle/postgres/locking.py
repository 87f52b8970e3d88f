"""Locking tables without ever making an application fail: no deadlock can have one of our locks in it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, DatabaseError, sql

LOCK_SECONDS: Final = 5.0
"""How long to try before giving up."""
SHORT_LOCKS: Final = f"set local lock_timeout = '{LOCK_SECONDS}s'"
"""For statements that lock what they look at: they give up after as long."""
BRIEF_LOCKS: Final = "set local lock_timeout = '200ms'"
"""For who looks after many tables in turn: each may be locked by somebody who wants the others to wait."""
ACCESS_SHARE: Final = sql.SQL("access share")
ROW_EXCLUSIVE: Final = sql.SQL("row exclusive")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2
_LOCK_NOT_AVAILABLE: Final = "55P03"
_CONTENTION: Final = frozenset({_LOCK_NOT_AVAILABLE, "40001", "40P01", "55006"})
_INTERNAL_ERROR: Final = "XX000"
_CONCURRENT_DDL: Final = ("tuple concurrently", "cache lookup failed", "could not open relation with OID")


def lock_tables(connection: Connection, tables: Iterable[RelationName], mode: sql.SQL) -> None:
    """Lock all of the tables at once, inside the transaction; raises SQLSTATE 55P03 if that takes too long.

    A session that waits for one lock while it holds another can close a deadlock, and PostgreSQL cancels
    whichever session finds it, perhaps the application's. So nothing is held between two attempts, and each
    attempt takes all locks or none. One message to the server, and no snapshot is taken.
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
    """Whether a statement failed only because of what other sessions did at the same time: try it again."""
    if not isinstance(error, DatabaseError):
        return False
    # a catalog row that changes during our statement is an internal error to PostgreSQL
    return error.sqlstate in _CONTENTION or (
        error.sqlstate == _INTERNAL_ERROR and (error.diag.message_primary or "").startswith(_CONCURRENT_DDL)
    )
