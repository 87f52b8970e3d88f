"""Creates, alters, drops and resumes stream tables by calling the public SQL functions."""

from __future__ import annotations

from collections.abc import Mapping
from time import sleep
from typing import Final

from pgtrickle.commands.connections import check_known, open_as_author, open_installed, qualified_name
from pgtrickle.model.errors import Busy
from pgtrickle.postgres.connection import Connection, DatabaseError, Diagnostic, check_writable, sql

Options = Mapping[str, str | bool | None]
"""Arguments of the SQL function by name. An absent argument gets the default of the function."""

RETRY_PAUSES: Final = (0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts. A lock on a source is usually short."""

_RETRYABLE: Final = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATEs worth a retry: lock timeout, deadlock, serialization failure."""


def create(dsn: str, name: str, query: str, options: Options) -> list[str]:
    """Create a stream table, which a sidecar then loads; return the notices about it."""
    return _create(dsn, "create_stream_table", name, query, options)


def create_if_not_exists(dsn: str, name: str, query: str, options: Options) -> bool:
    """Create a stream table unless one of that name exists; return whether it was created."""
    with open_installed(dsn) as connection:
        if qualified_name(connection, name) is not None:
            return False
    _create(dsn, "create_stream_table_if_not_exists", name, query, options)
    return True


def create_or_replace(dsn: str, name: str, query: str, options: Options) -> list[str]:
    """Create a stream table, or redefine the one of that name; return the notices about it."""
    return _create(dsn, "create_or_replace_stream_table", name, query, options)


def alter(dsn: str, name: str, options: Options) -> list[str]:
    """Change the query or options of a stream table; return the notices. Absent options stay unchanged."""
    with open_as_author(dsn) as connection:
        check_writable(connection)
        check_known(connection, name)
        return _call(connection, "alter_stream_table", {"name": name, **options})


def drop(dsn: str, name: str, *, cascade: bool = False) -> None:
    """Drop a stream table; with `cascade`, also everything that reads it."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        full_name = check_known(connection, name)
        _call(connection, "drop_stream_table", {"name": full_name, "cascade": cascade})


def resume(dsn: str, name: str) -> None:
    """Resume a suspended or failed stream table and reset its error count."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        _call(connection, "resume_stream_table", {"name": check_known(connection, name)})


def _create(dsn: str, function: str, name: str, query: str, options: Options) -> list[str]:
    with open_as_author(dsn) as connection:
        check_writable(connection)
        return _call(connection, function, {"name": name, "query": query, **options})


def _call(connection: Connection, function: str, arguments: Options) -> list[str]:
    """Call a SQL function, retrying on contention; return one text for each notice."""
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(_notice_text(notice)))
    for pause in (*RETRY_PAUSES, None):
        notices.clear()
        try:
            with connection.transaction():
                connection.execute(_statement(function, arguments), tuple(arguments.values()))
            return notices
        except DatabaseError as error:
            if error.sqlstate not in _RETRYABLE:
                raise
            if pause is None:
                raise _busy(error) from error
            sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _notice_text(notice: Diagnostic) -> str:
    parts = (notice.message_primary, notice.message_detail, notice.message_hint)
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


def _statement(function: str, arguments: Options) -> sql.Composed:
    given = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder()) for name in arguments
    )
    return sql.SQL("select {}({})").format(sql.Identifier("pgtrickle", function), given)


def _busy(error: DatabaseError) -> Busy:
    message = error.diag.message_primary or "another session holds a lock that is needed"
    return Busy(message, hint=error.diag.message_hint or "try again when the other session has finished")
