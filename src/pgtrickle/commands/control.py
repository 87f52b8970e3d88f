"""Let refreshes wait, and go on: gates before sources, and draining the whole database."""

from __future__ import annotations

from pgtrickle.commands.opening import opened
from pgtrickle.model.errors import Busy
from pgtrickle.postgres.connection import Connection, along_login_path, check_writable


def gate(dsn: str, source: str) -> list[str]:
    """Let all that depends on a source wait; the stream tables that do."""
    with opened(dsn) as connection:
        check_writable(connection)
        source = _full_name(connection, source)
        connection.execute("select pgtrickle.gate_source(%s)", (source,))
        row = connection.execute(
            "select stream_tables from pgtrickle.gated_sources()"
            " where source_oid = pgtrickle_internal.source_named(%s)",
            (source,),
        ).fetchone()
        return list(row[0]) if row else []


def ungate(dsn: str, source: str) -> None:
    """Let all that depends on a source go on."""
    with opened(dsn) as connection:
        check_writable(connection)
        connection.execute("select pgtrickle.ungate_source(%s)", (_full_name(connection, source),))


def _full_name(connection: Connection, source: str) -> str:
    """The name of a source with its schema; a bare one is looked up along the search_path of the login."""
    with along_login_path(connection):
        row = connection.execute(
            "select pgtrickle_internal.printed(pgtrickle_internal.source_named(%s))", (source,)
        ).fetchone()
    assert row is not None
    return str(row[0])


def drain(dsn: str, timeout_seconds: int) -> None:
    """Let no refresh start any more, and wait until none runs; raises if one still does."""
    with opened(dsn) as connection:
        check_writable(connection)
        row = connection.execute("select pgtrickle.drain(%s)", (timeout_seconds,)).fetchone()
        if row != (True,):
            raise Busy(
                f"a refresh still runs after {timeout_seconds} s; none starts any more",
                hint="pgtrickle drain waits again, pgtrickle undrain lets them go on",
            )


def undrain(dsn: str) -> None:
    """Let refreshes start again."""
    with opened(dsn) as connection:
        check_writable(connection)
        connection.execute("select pgtrickle.undrain()")
