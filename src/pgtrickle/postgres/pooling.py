"""Telling whether a pooler stands between us and the server."""

from __future__ import annotations

from enum import Enum

from pgtrickle.postgres.connection import Connection


class Pooling(Enum):
    """What is known of the way to the server before anybody looks; AUTO looks."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


def goes_through_pooler(connection: Connection) -> bool:
    """Whether somebody else than the process we logged in to answers us.

    At login a server names the process that serves us, so that we can cancel. A pooler names none of
    the server's: which one serves us changes with each transaction.
    """
    row = connection.execute("select pg_backend_pid()").fetchone()
    connection.rollback()
    assert row is not None
    return bool(row[0] != connection.info.backend_pid)
