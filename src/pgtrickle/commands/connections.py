"""Connections for commands. They turn errors of PostgreSQL into errors of pgtrickle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pgtrickle.catalog.install import check_installed, rights_of_owner_missing
from pgtrickle.model.errors import ConnectionFailed, PgTrickleError, UnknownStreamTable
from pgtrickle.model.names import RelationName, quoted_plainly
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import (
    Connection,
    DatabaseError,
    connect,
    connect_as_author,
    login_search_path,
)
from pgtrickle.postgres.connection import to_error as to_postgres_error
from pgtrickle.postgres.pinned import PinnedConnection
from pgtrickle.postgres.server_timeouts import server_timeout_behind

_PERMISSION_DENIED: Final = "42501"
_OURS: Final = re.compile(r"\b(pgt_\w+|pgtrickle(_\w+)?|clear_caches|cache_stats)\b")
"""Names of the catalog in an error message, whatever its language."""
_DENIED_SCHEMA: Final = re.compile(r"^permission denied for schema (.+)$")


@contextmanager
def open_installed(dsn: str) -> Iterator[PinnedConnection]:
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
def open_connection(dsn: str) -> Iterator[PinnedConnection]:
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
    """The error of pgtrickle for an error of PostgreSQL; a lost connection explains most of them."""
    if connection.closed and (limit := server_timeout_behind(error)):
        return ConnectionFailed(
            f"the server closed the connection because of {limit}", hint=f"raise {limit} and try again"
        )
    if connection.closed:
        return ConnectionFailed(
            "the server closed the connection", hint="check that the server is running, and try again"
        )
    if error.sqlstate == _PERMISSION_DENIED and error.diag.message_hint is None:
        return _permission_denied(connection, error)
    return to_postgres_error(error)


def _permission_denied(connection: Connection, error: DatabaseError) -> PgTrickleError:
    """The error of PostgreSQL itself; if it protects the catalog of pgtrickle, with the GRANT that helps."""
    message = error.diag.message_primary or ""
    if not _OURS.search(message):
        found = to_postgres_error(error)
        if schema := _DENIED_SCHEMA.search(message):
            found.hint = f"grant usage on schema {schema[1]} to {quoted_plainly(connection.info.user)}"
        return found
    try:
        return rights_of_owner_missing(connection)
    except DatabaseError:
        # the transaction has failed, so nothing can be asked
        return to_postgres_error(error)


def qualified_name(connection: Connection, name: str) -> str | None:
    """The name of a stream table with its schema, as SQL; None if there is no such stream table."""
    with login_search_path(connection):
        row = connection.execute(
            "select pgtrickle_internal.shown_name(pgtrickle_internal.find_stream_table(%s))", (name,)
        ).fetchone()
    return row[0] if row else None


def stream_table_id(connection: Connection, name: str) -> StreamTableId:
    """The id of a stream table; raise if there is no such stream table."""
    with login_search_path(connection):
        row = connection.execute("select pgtrickle_internal.find_stream_table(%s)", (name,)).fetchone()
    if row is None or row[0] is None:
        raise _unknown(connection, name)
    return StreamTableId(row[0])


def check_known(connection: Connection, name: str) -> str:
    """The name of a stream table with its schema; raise if there is no such stream table."""
    found = qualified_name(connection, name)
    if found is None:
        raise _unknown(connection, name)
    return found


def _unknown(connection: Connection, name: str) -> UnknownStreamTable:
    hint = "select * from pgtrickle.pgt_status() lists all of them"
    if similar := _similar_name(connection, name):
        hint = f"Did you mean {similar}? {hint}"
    elif "." not in name:
        hint += "; if its schema is not in the search_path, write schema.name"
    return UnknownStreamTable(f"there is no stream table {name}", hint=hint)


def _similar_name(connection: Connection, name: str) -> str | None:
    """The stream table whose name is closest to a mistyped one, with its schema, as SQL."""
    # imported here, because only mistakes need it
    from difflib import get_close_matches

    rows = connection.execute("select pgt_schema, pgt_name from pgtrickle.stream_tables_info").fetchall()
    names = [RelationName(schema, table) for schema, table in rows]
    if "." in name:
        by_text = {str(known): known for known in names}
    else:
        by_text = {known.name: known for known in names}
    closest = get_close_matches(name, by_text, n=1, cutoff=0.75)
    return str(by_text[closest[0]]) if closest else None
