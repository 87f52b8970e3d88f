"""Pauses and resumes the stream tables that depend on a source."""

from __future__ import annotations

from pgtrickle.commands.connections import open_installed
from pgtrickle.postgres.connection import Connection, check_writable, login_search_path


def gate(dsn: str, source: str) -> list[str]:
    """Pause every stream table that depends on a source; return their names."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        source = _full_name(connection, source)
        connection.execute("select pgtrickle.gate_source(%s)", (source,))
        return _gate(connection, source) or []


def ungate(dsn: str, source: str) -> bool:
    """Let the stream tables that depend on a source be refreshed again; return whether it was gated."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        source = _full_name(connection, source)
        with connection.transaction():
            was_gated = _gate(connection, source) is not None
            connection.execute("select pgtrickle.ungate_source(%s)", (source,))
        return was_gated


def _gate(connection: Connection, source: str) -> list[str] | None:
    """The stream tables that a gated source keeps waiting; None if it is not gated."""
    row = connection.execute(
        "select stream_tables from pgtrickle.gated_sources()"
        " where source_oid = pgtrickle_internal.source_named(%s)",
        (source,),
    ).fetchone()
    return list(row[0]) if row else None


def _full_name(connection: Connection, source: str) -> str:
    """The name of a source with its schema. The search_path of the login resolves a bare name."""
    with login_search_path(connection):
        row = connection.execute(
            "select pgtrickle_internal.printed(pgtrickle_internal.source_named(%s))", (source,)
        ).fetchone()
    assert row is not None
    return str(row[0])
