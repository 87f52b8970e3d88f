"""Connections for commands. They turn errors of PostgreSQL into errors of pgtrickle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgtrickle.catalog.install import check_installed
from pgtrickle.model.errors import ConnectionFailed, PgTrickleError, UnknownStreamTable
from pgtrickle.postgres.connection import (
    Connection,
    DatabaseError,
    connect,
    connect_as_author,
    login_search_path,
    to_refusal,
)
from pgtrickle.postgres.server_timeouts import server_timeout_behind


@contextmanager
def open_installed(dsn: str) -> Iterator[Connection]:
    """Open an autocommit connection; raise unless pgtrickle is installed in the database."""
    with open_connection(dsn) as connection:
        check_installed(connection)
        yield connection


@contextmanager
def open_as_author(dsn: str) -> Iterator[Connection]:
    """Open the same connection under the settings of its role, which give queries their meaning."""
    with connect_as_author(dsn) as connection, _translate_errors(connection):
        check_installed(connection)
        yield connection


@contextmanager
def open_connection(dsn: str) -> Iterator[Connection]:
    """Open an autocommit connection. Errors of PostgreSQL are raised as errors of pgtrickle."""
    with connect(dsn, autocommit=True) as connection, _translate_errors(connection):
        yield connection


@contextmanager
def _translate_errors(connection: Connection) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise to_error(connection, error) from error


def to_error(connection: Connection, error: DatabaseError) -> PgTrickleError:
    """The error of pgtrickle for an error of PostgreSQL: a lost connection or a refusal."""
    if connection.closed and (limit := server_timeout_behind(error)):
        return ConnectionFailed(
            f"the server closed the connection because of {limit}", hint=f"raise {limit}, then try again"
        )
    if connection.closed:
        return ConnectionFailed("the server closed the connection", hint="check that it runs, then try again")
    return to_refusal(error)


def qualified_name(connection: Connection, name: str) -> str | None:
    """The name of a stream table with its schema, as SQL; None if there is no such stream table."""
    with login_search_path(connection):
        row = connection.execute(
            "select pgtrickle_internal.shown_name(pgtrickle_internal.find_stream_table(%s))", (name,)
        ).fetchone()
    return row[0] if row else None


def check_known(connection: Connection, name: str) -> str:
    """The name of a stream table with its schema; raise if there is no such stream table."""
    found = qualified_name(connection, name)
    if found is None:
        raise UnknownStreamTable(
            f"there is no stream table {name}",
            hint="pgtrickle list shows them; outside the search_path, write schema.name",
        )
    return found
