"""Whether a connection that was used can be used again."""

from __future__ import annotations

import select
from contextlib import suppress

from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.prepared_statements import is_in_order


def roll_back(connection: Connection) -> bool:
    """End what is left of a transaction; whether the connection can be used again."""
    if connection.closed or connection.broken:
        return False
    try:
        if is_in_order(connection):
            # the driver's own way of rolling back forgets what is prepared, in case something failed
            connection.execute("rollback")
        else:
            connection.rollback()
    except DatabaseError:
        return False
    return True


def is_alive(connection: Connection) -> bool:
    """Whether the other end is still there, as far as can be known without asking.

    Nothing was asked, so what has come is the end of the connection, or a message about it.
    """
    if connection.closed or connection.broken:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def close_quietly(connection: Connection) -> None:
    """Let go of a connection, whatever has become of it."""
    with suppress(DatabaseError):
        connection.close()
