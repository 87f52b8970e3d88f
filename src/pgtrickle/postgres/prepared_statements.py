"""Prepared statements: kept for what repeats on one connection, where it leads straight to the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from pgtrickle.postgres.connection import Connection

SEEN_BEFORE: Final = 1
"""A statement is prepared when it comes for the second time: most repeat with every refresh."""


@contextmanager
def prepared_statements(connections: Sequence[Connection], *, wanted: bool) -> Iterator[None]:
    """Keep statements that repeat prepared, if wanted; else none are used or made."""
    if not wanted:
        yield
        return
    for connection in connections:
        connection.prepare_threshold = SEEN_BEFORE
    try:
        yield
    finally:
        for connection in connections:
            connection.prepare_threshold = None


def is_in_order(connection: Connection) -> bool:
    """Whether the connection is in a transaction in which nothing has failed."""
    return connection.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS


def is_outdated_plan(error: Exception) -> bool:
    """Whether a prepared statement no longer fits what it reads: its columns were altered."""
    # the message is in the language of the server
    return (
        isinstance(error, psycopg.errors.FeatureNotSupported)
        and error.diag.source_function == "RevalidateCachedQuery"
    )
