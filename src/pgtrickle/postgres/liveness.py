"""Checks and restores connections before they are used again."""

from __future__ import annotations

import select
from contextlib import suppress

from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.prepared_statements import is_in_order


def roll_back(connection: Connection) -> bool:
    """Roll back an open transaction; return whether the connection can be used again."""
    if connection.closed or connection.broken:
        return False
    try:
        if is_in_order(connection):
            # psycopg's rollback() discards prepared statements, which is only needed after a failure
            connection.execute("rollback")
        else:
            connection.rollback()
    except DatabaseError:
        return False
    return True


def is_alive(connection: Connection) -> bool:
    """Whether the server is still connected, as far as we can know without a query.

    Without a query, any input is the end of the connection or a message about it.
    """
    if connection.closed or connection.broken:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def close_quietly(connection: Connection) -> None:
    """Close a connection and ignore errors."""
    with suppress(DatabaseError):
        connection.close()
