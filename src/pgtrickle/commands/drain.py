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
                f"a refresh still runs after {timeout_seconds} s; none starts any more",
                hint="pgtrickle drain waits again, pgtrickle undrain lets them go on",
            )


def undrain(dsn: str) -> None:
    """Let refreshes start again."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        connection.execute("select pgtrickle.undrain()")
