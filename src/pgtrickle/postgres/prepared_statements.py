"""Prepared statements, for statements that repeat on one direct connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from pgtrickle.postgres.connection import Connection

SEEN_BEFORE: Final = 1
"""Prepare a statement at its second execution: most repeat with every refresh."""


@contextmanager
def prepared_statements(connections: Sequence[Connection], *, wanted: bool) -> Iterator[None]:
    """Prepare repeated statements on these connections if `wanted`; otherwise prepare none."""
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
    """Whether the connection is in a transaction without a failed statement."""
    return connection.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS


def is_outdated_plan(error: Exception) -> bool:
    """Whether a prepared statement is outdated because the columns of its result have changed."""
    # the message depends on the language of the server
    return (
        isinstance(error, psycopg.errors.FeatureNotSupported)
        and error.diag.source_function == "RevalidateCachedQuery"
    )
