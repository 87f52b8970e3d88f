"""Opens connections to PostgreSQL and translates their errors."""

from __future__ import annotations

import os
import re
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
    PgTrickleError,
    ReadOnlyServer,
    UnsuitableSetting,
    UnsupportedServer,
    error_class,
)
from pgtrickle.postgres.excerpts import excerpt
from pgtrickle.postgres.pinned import PinnedConnection
from pgtrickle.postgres.settings import SAFE_PATH

Connection: TypeAlias = psycopg.Connection[TupleRow]
DatabaseError = psycopg.Error
Diagnostic = psycopg.errors.Diagnostic
DataError = psycopg.DataError

OLDEST: Final = 14
NEWEST: Final = 18

ENCODING: Final = "UTF8"
_UNTRANSLATABLE: Final = "MULE_INTERNAL"
"""The only database encoding that PostgreSQL cannot convert to UTF-8."""

_REPEATED: Final = re.compile(
    r'^connection (failed|is bad): |connection to server at "[^"]*"( \([^)]*\))?, port \d+ failed: '
)
"""What psycopg and libpq say before the cause; our message names the address already."""

_MALFORMED: Final = "it is not a connection string"
_REMEDIES: Final = (
    (_MALFORMED, "write postgresql://user@host:port/database, or host=… port=… dbname=… user=…"),
    ("password", "check the user and the password: in the address, in ~/.pgpass or in PGPASSWORD"),
    ("pg_hba.conf", "allow this user, database and client address in pg_hba.conf on the server"),
    ("refused", "check the host and the port, and that the server is running"),
    ("No such file", "check that the server is running, or name its host and port"),
    ("resolve", "check the name of the host"),
    ("does not exist", "create it, or correct the name in the address"),
)
"""What to do, by a word of the cause. Another language than English gets the general advice."""

__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "check_writable",
    "connect",
    "connect_as_author",
    "login_search_path",
    "set_locally",
    "sql",
    "to_refusal",
]


def connect(
    dsn: str, *, autocommit: bool = False, application_name: str = "pgtrickle", is_pooled: bool | None = None
) -> PinnedConnection:
    """Open a connection under our own settings, directly or through a pooler in transaction mode.

    If `is_pooled` is None, the connection detects whether there is a pooler.
    """
    connection = _open(dsn, autocommit=autocommit, application_name=application_name)
    try:
        connection.pin(is_pooled=is_pooled)
    except psycopg.Error as error:
        connection.close()
        raise _unreachable(dsn, error) from None
    return connection


def connect_as_author(dsn: str) -> Connection:
    """Open an autocommit connection under the settings of its role, as the author of a query has them.

    Only the encoding is ours, because it decides which texts can be transferred.
    """
    return _open(dsn, autocommit=True, application_name="pgtrickle")


def _open(dsn: str, *, autocommit: bool, application_name: str) -> PinnedConnection:
    try:
        # a prepared statement outlives its transaction, which a pooler does not support
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
            f"the encoding of {_address(dsn)} is {_UNTRANSLATABLE}, which cannot be converted to UTF-8",
            hint="use a database with another encoding, for example: create database ... encoding 'UTF8'"
            " template template0",
        )
    return ConnectionFailed(
        f"cannot connect to {_address(dsn)}: {message}",
        hint=next(
            (hint for cause, hint in _REMEDIES if cause in message),
            "check the address and the credentials, and that the server is running",
        ),
    )


@contextmanager
def login_search_path(connection: Connection) -> Iterator[None]:
    """Resolve names without a schema by the search_path of the login.

    Only call functions that are safe under any search_path: other roles control what that path finds. Nothing
    is rolled back on success, because psycopg forgets its prepared statements with a rollback.
    """
    with connection.transaction():
        connection.execute("set local search_path to default")
        yield
        connection.execute(f"set local search_path = {SAFE_PATH}")


def set_locally(connection: Connection, settings: Mapping[str, str]) -> None:
    """Set these settings until the transaction ends."""
    connection.execute(
        "select pg_catalog.set_config(s.name, s.value, true)"
        " from unnest(%s::text[], %s::text[]) as s(name, value)",
        (list(settings), list(settings.values())),
    )


def check_writable(connection: Connection) -> None:
    """Raise unless the server accepts writes: it is not a standby and not read-only by default."""
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


def to_error(error: psycopg.Error) -> PgTrickleError:
    """The error of pgtrickle that the SQLSTATE of PostgreSQL stands for, with everything it says."""
    return _filled(error_class(error.sqlstate), error)


def to_refusal(error: psycopg.Error) -> CommandRefused:
    """The same as a `CommandRefused`, even if its class is another one."""
    found = error_class(error.sqlstate)
    refusal = _filled(found if issubclass(found, CommandRefused) else CommandRefused, error)
    assert isinstance(refusal, CommandRefused)
    return refusal


def _filled(kind: type[PgTrickleError], error: psycopg.Error) -> PgTrickleError:
    said = error.diag
    found = kind(said.message_primary or str(error).strip(), hint=said.message_hint)
    found.detail = said.message_detail
    # a query that a function was given is an internal query of it
    found.excerpt = excerpt(said.internal_query, said.internal_position)
    found.position = int(said.internal_position) if found.excerpt and said.internal_position else None
    if isinstance(found, CommandRefused):
        found.refused_with = error.sqlstate
    return found


def _address(dsn: str) -> str:
    """The database, host and port that libpq uses for a connection string, without secrets."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "the given address"
    database = parts.get("dbname") or os.environ.get("PGDATABASE") or "the database"
    host = parts.get("host") or parts.get("hostaddr") or os.environ.get("PGHOST")
    port = parts.get("port") or os.environ.get("PGPORT") or 5432
    return f"{database} at {host}:{port}" if host else f"{database} on the local socket"


def _first_line(error: psycopg.Error) -> str:
    return _REPEATED.sub("", str(error).strip().partition("\n")[0])


def _without_password(text: str, dsn: str) -> str:
    """The text with the password of the connection string masked."""
    try:
        password = conninfo_to_dict(dsn).get("password")
    except psycopg.Error:
        return _MALFORMED
    return text.replace(str(password), "***") if password else text
