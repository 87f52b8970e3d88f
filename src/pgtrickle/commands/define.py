"""Create, alter, drop and resume stream tables, by the SQL functions that psql users call too."""

from __future__ import annotations

from collections.abc import Mapping
from time import sleep
from typing import Final

from pgtrickle.commands.connections import check_known, open_as_author, open_installed, qualified_name
from pgtrickle.model.errors import Busy
from pgtrickle.postgres.connection import Connection, DatabaseError, Diagnostic, check_writable, sql

Options = Mapping[str, str | bool | None]
"""Arguments of the SQL function by name; what is absent keeps its default there."""

PAUSES: Final = (0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts: a source that is locked now is usually free soon."""

_PASSING: Final = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATEs of a lock not had in time, a deadlock, a lost race: trying again may help."""


def create(dsn: str, name: str, query: str, options: Options) -> list[str]:
    """Create a stream table; a sidecar loads it after this. Returns what is worth knowing about it."""
    return _create(dsn, "create_stream_table", name, query, options)


def create_if_not_exists(dsn: str, name: str, query: str, options: Options) -> bool:
    """Create a stream table, unless there is one of that name, which stays as it is; whether it did."""
    with open_installed(dsn) as connection:
        if qualified_name(connection, name) is not None:
            return False
    _create(dsn, "create_stream_table_if_not_exists", name, query, options)
    return True


def create_or_replace(dsn: str, name: str, query: str, options: Options) -> list[str]:
    """Create a stream table, or give the one of that name this definition. Returns what is worth knowing."""
    return _create(dsn, "create_or_replace_stream_table", name, query, options)


def alter(dsn: str, name: str, options: Options) -> list[str]:
    """Change the query or any option of a stream table; what is not given stays as it is.

    Returns what is worth knowing about it.
    """
    with open_as_author(dsn) as connection:
        check_writable(connection)
        check_known(connection, name)
        return _call(connection, ("alter_stream_table", {"name": name, **options}))


def drop(dsn: str, name: str, *, cascade: bool = False) -> None:
    """Drop a stream table; with `cascade`, whatever reads it as well."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        full_name = check_known(connection, name)
        _call(connection, ("drop_stream_table", {"name": full_name, "cascade": cascade}))


def resume(dsn: str, name: str) -> None:
    """Let a suspended or failed stream table go on, its errors forgiven."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        _call(connection, ("resume_stream_table", {"name": check_known(connection, name)}))


def _create(dsn: str, function: str, name: str, query: str, options: Options) -> list[str]:
    """Create by one of the functions; a tier is no argument of theirs, and given in the same transaction."""
    asked = {option: value for option, value in options.items() if option != "tier"}
    calls = [(function, {"name": name, "query": query, **asked})]
    if "tier" in options:
        calls.append(("alter_stream_table", {"name": name, "tier": options["tier"]}))
    with open_as_author(dsn) as connection:
        check_writable(connection)
        return _call(connection, *calls)


def _call(connection: Connection, *calls: tuple[str, Options]) -> list[str]:
    """Call functions of ours in one transaction, a few times if others hold what they need.

    Returns what PostgreSQL had to say, one text for each notice.
    """
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(_told(notice)))
    for pause in (*PAUSES, None):
        said.clear()
        try:
            with connection.transaction():
                for function, arguments in calls:
                    connection.execute(_statement(function, arguments), tuple(arguments.values()))
            return said
        except DatabaseError as error:
            if error.sqlstate not in _PASSING:
                raise
            if pause is None:
                raise _busy(error) from error
            sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _told(notice: Diagnostic) -> str:
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
