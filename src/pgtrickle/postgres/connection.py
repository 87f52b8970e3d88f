"""Connections to PostgreSQL, and the shared snapshot of a refresh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from pgtrickle.model.errors import CommandRefused, ConnectionFailed, ReadOnlyServer, UnsupportedServer
from pgtrickle.model.frontier import Frontier

Connection: TypeAlias = psycopg.Connection[TupleRow]
DatabaseError = psycopg.Error
Diagnostic = psycopg.errors.Diagnostic
DataError = psycopg.DataError

OLDEST: Final = 14
NEWEST: Final = 18

__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "Snapshot",
    "check_writable",
    "connect",
    "refused",
    "sql",
]


def connect(dsn: str, *, autocommit: bool = False, application_name: str = "pgtrickle") -> Connection:
    """Open a connection that works straight and through a pooler in transaction mode."""
    try:
        # a prepared statement would outlive its transaction, which such a pooler cannot follow
        connection = psycopg.connect(
            dsn, autocommit=autocommit, prepare_threshold=None, application_name=application_name
        )
    except psycopg.Error as error:
        raise ConnectionFailed(
            f"cannot connect to {_address(dsn)}: {_without_password(_first_line(error), dsn)}",
            hint="check the address, that the server runs, and the credentials",
        ) from None
    major = connection.info.server_version // 10000
    if not OLDEST <= major <= NEWEST:
        connection.close()
        raise UnsupportedServer(
            f"the server is PostgreSQL {major}; pgtrickle works with {OLDEST} to {NEWEST}",
            hint=f"use a server of version {OLDEST} to {NEWEST}",
        )
    return connection


def check_writable(connection: Connection) -> None:
    """Raise unless this server takes writes: not a standby, not read-only by default."""
    row = connection.execute(
        "select pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
    ).fetchone()
    assert row is not None
    is_standby, is_read_only = row
    if is_standby:
        raise ReadOnlyServer("the server is a standby", hint="connect to the primary")
    if is_read_only:
        raise ReadOnlyServer(
            "transactions of this database or role are read-only",
            hint="set default_transaction_read_only = off for the role that pgtrickle uses",
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the database, which other connections enter by its `id`."""

    id: str
    frontier: Frontier
    connection: Connection


def refused(error: psycopg.Error) -> CommandRefused:
    """PostgreSQL's refusal in our words: its message, its hint and its SQLSTATE."""
    message = error.diag.message_primary or str(error).strip()
    return CommandRefused(message, hint=error.diag.message_hint, refused_with=error.sqlstate)


def _address(dsn: str) -> str:
    """Where a connection string leads to, without any secret."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "the given address"
    host = parts.get("host") or parts.get("hostaddr") or "the local socket"
    return f"{parts.get('dbname') or 'the database'} at {host}:{parts.get('port') or 5432}"


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]


def _without_password(text: str, dsn: str) -> str:
    """The text with everything secret of the connection string blotted out."""
    try:
        password = conninfo_to_dict(dsn).get("password")
    except psycopg.Error:
        return "the connection string cannot be read"
    return text.replace(str(password), "***") if password else text
