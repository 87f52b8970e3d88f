"""Connections to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from pgtrickle.model.errors import (
    CommandRefused,
    ConnectionFailed,
    ReadOnlyServer,
    UnsuitableSetting,
    UnsupportedServer,
)
from pgtrickle.postgres.pinned import PinnedConnection

Connection: TypeAlias = psycopg.Connection[TupleRow]
DatabaseError = psycopg.Error
Diagnostic = psycopg.errors.Diagnostic
DataError = psycopg.DataError

OLDEST: Final = 14
NEWEST: Final = 18

ENCODING: Final = "UTF8"
_UNTRANSLATABLE: Final = "MULE_INTERNAL"
"""The one encoding of a database that PostgreSQL cannot turn into UTF-8."""

__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "along_login_path",
    "check_writable",
    "connect",
    "connect_as_author",
    "refused",
    "set_locally",
    "sql",
]


def connect(
    dsn: str, *, autocommit: bool = False, application_name: str = "pgtrickle", is_pooled: bool | None = None
) -> PinnedConnection:
    """Open a connection under our own settings, straight or through a pooler in transaction mode.

    Without `is_pooled`, the connection finds out whether a pooler is on the way.
    """
    connection = _open(dsn, autocommit=autocommit, application_name=application_name)
    try:
        connection.pin(is_pooled=is_pooled)
    except psycopg.Error as error:
        connection.close()
        raise _unreachable(dsn, error) from None
    return connection


def connect_as_author(dsn: str) -> Connection:
    """Open a connection under the settings of its role, on which a query means what its author means.

    Each statement is committed at once. Only the encoding is ours: it decides which texts arrive at all.
    """
    return _open(dsn, autocommit=True, application_name="pgtrickle")


def _open(dsn: str, *, autocommit: bool, application_name: str) -> PinnedConnection:
    try:
        # a prepared statement would outlive its transaction, which a pooler cannot follow
        connection = PinnedConnection.connect(
            dsn,
            autocommit=autocommit,
            prepare_threshold=None,
            application_name=application_name,
            client_encoding=ENCODING,
        )
    except psycopg.Error as error:
        raise _unreachable(dsn, error) from None
    major = connection.info.server_version // 10000
    if not OLDEST <= major <= NEWEST:
        connection.close()
        raise UnsupportedServer(
            f"the server is PostgreSQL {major}; pgtrickle works with {OLDEST} to {NEWEST}",
            hint=f"use a server of version {OLDEST} to {NEWEST}",
        )
    return connection


def _unreachable(dsn: str, error: psycopg.Error) -> ConnectionFailed | UnsuitableSetting:
    message = _without_password(_first_line(error), dsn)
    if _UNTRANSLATABLE in message:
        return UnsuitableSetting(
            f"the encoding of {_address(dsn)} is {_UNTRANSLATABLE}, which cannot become UTF-8",
            hint="use a database with another encoding, for example: create database ... encoding 'UTF8'"
            " template template0",
        )
    return ConnectionFailed(
        f"cannot connect to {_address(dsn)}: {message}",
        hint="check the address, that the server runs, and the credentials",
    )


@contextmanager
def along_login_path(connection: Connection) -> Iterator[None]:
    """Let names without a schema mean what they mean to the role that logged in; what is done here is undone.

    Only for calls of functions that are safe under any search_path: others decide what is found along it.
    """
    with connection.transaction(force_rollback=True):
        connection.execute("set local search_path to default")
        yield


def set_locally(connection: Connection, settings: Mapping[str, str]) -> None:
    """Give settings these values until the transaction ends."""
    connection.execute(
        "select pg_catalog.set_config(s.name, s.value, true)"
        " from unnest(%s::text[], %s::text[]) as s(name, value)",
        (list(settings), list(settings.values())),
    )


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
