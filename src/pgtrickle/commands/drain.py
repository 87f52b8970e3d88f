"""Stops refreshes from starting in a whole database, and lets them start again."""

from __future__ import annotations

from pgtrickle.commands.connections import open_installed
from pgtrickle.model.errors import Busy
from pgtrickle.postgres.connection import check_writable


def drain(dsn: str, timeout_seconds: int) -> None:
    """Let no new refresh start and wait for the running ones; raise `Busy` if one runs past the timeout."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        row = connection.execute("select pgtrickle.drain(%s)", (timeout_seconds,)).fetchone()
        if row != (True,):
            raise Busy(
                f"a refresh is still running after {timeout_seconds} s; no other will start",
                hint="to wait again, run select pgtrickle.drain();"
                " to let refreshes start again, run select pgtrickle.undrain()",
            )


def undrain(dsn: str) -> bool:
    """Let refreshes start again; return whether they were stopped."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        with connection.transaction():
            row = connection.execute("select pgtrickle_internal.is_draining()").fetchone()
            connection.execute("select pgtrickle.undrain()")
        return bool(row and row[0])
