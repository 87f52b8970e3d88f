"""Creates, alters, drops and resumes stream tables by calling the public SQL functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import sleep
from typing import Final

from pgtrickle.commands.as_owner import execute_as
from pgtrickle.commands.attached import declaring
from pgtrickle.commands.connections import check_known, open_as_author, open_installed, qualified_name
from pgtrickle.model.errors import Busy
from pgtrickle.postgres.connection import Connection, DatabaseError, Diagnostic, check_writable, sql

Options = Mapping[str, str | bool | None]
"""Arguments of the SQL function by name. An absent argument gets the default of the function."""

RETRY_PAUSES: Final = (0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts. A lock on a source is usually short."""

_RETRYABLE: Final = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATEs worth a retry: lock timeout, deadlock, serialization failure."""


def create(dsn: str, name: str, query: str, options: Options, owner: str | None = None) -> list[str]:
    """Create a stream table, which a sidecar then loads; return the notices about it.

    `owner` is the role that shall own it, by default that of the connection. Only its rights count.
    """
    return _create(dsn, "create_stream_table", name, query, options, owner)


def create_if_not_exists(dsn: str, name: str, query: str, options: Options, owner: str | None = None) -> bool:
    """Create a stream table unless one of that name exists; return whether it was created."""
    with open_installed(dsn) as connection:
        if qualified_name(connection, name) is not None:
            return False
    _create(dsn, "create_stream_table_if_not_exists", name, query, options, owner)
    return True


def create_or_replace(
    dsn: str, name: str, query: str, options: Options, owner: str | None = None
) -> list[str]:
    """Create a stream table, or redefine the one of that name; return the notices about it."""
    return _create(dsn, "create_or_replace_stream_table", name, query, options, owner)


def alter_as_owner(dsn: str, name: str, options: Options) -> None:
    """Change the query or options of a stream table with the rights of its owner, and no others."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        known = check_known(connection, name)
        row = connection.execute(
            "select i.owner, i.owner = current_user from pgtrickle.stream_tables_info i"
            " where i.pgt_id = pgtrickle_internal.find_stream_table(%s)",
            (known,),
        ).fetchone()
    assert row is not None
    if row[1]:
        alter(dsn, known, options)
    else:
        _call_as(dsn, row[0], "alter_stream_table", {"name": known, **options})


def alter(dsn: str, name: str, options: Options) -> list[str]:
    """Change the query or options of a stream table; return the notices. Absent options stay unchanged."""
    with open_as_author(dsn) as connection:
        check_writable(connection)
        _check_alteration(dsn, connection, check_known(connection, name), options)
        return call(connection, "alter_stream_table", {"name": name, **options})


def drop(dsn: str, name: str, *, cascade: bool = False) -> list[str]:
    """Drop a stream table; with `cascade`, also everything that reads it. Returns the dropped ones."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        full_name = check_known(connection, name)
        before = _names(connection)
        call(connection, "drop_stream_table", {"name": full_name, "cascade": cascade})
        after = set(_names(connection))
        return [table for table in before if table not in after]


def resume(dsn: str, name: str) -> None:
    """Resume a suspended or failed stream table and reset its error count."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        call(connection, "resume_stream_table", {"name": check_known(connection, name)})


def _names(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("select name from pgtrickle.pgt_status()")]


def _create(dsn: str, function: str, name: str, query: str, options: Options, owner: str | None) -> list[str]:
    if owner is not None:
        if _is_differential(options.get("refresh_mode")):
            from pgtrickle.commands.validate import validate

            validate(dsn, query, "DIFFERENTIAL", owner=owner)
        _call_as(dsn, owner, function, {"name": name, "query": query, **options})
        return []
    with open_as_author(dsn) as connection:
        check_writable(connection)
        if _is_differential(options.get("refresh_mode")):
            from pgtrickle.commands.validate import check_followable

            check_followable(dsn, name, query)
        return call(connection, function, {"name": name, "query": query, **options})


def _check_alteration(dsn: str, connection: Connection, name: str, options: Options) -> None:
    """Raise if a stream table would promise to be incremental and cannot be."""
    asked_mode, query = options.get("refresh_mode"), options.get("query")
    if asked_mode is None and query is None:
        return
    row = connection.execute(
        "select pgt_id, refresh_mode from pgtrickle.pgt_stream_tables"
        " where pgt_id = pgtrickle_internal.find_stream_table(%s)",
        (name,),
    ).fetchone()
    if row is None or not _is_differential(asked_mode if asked_mode is not None else row[1]):
        return
    # the compiler takes a while to import, and most commands do without it
    from pgtrickle.commands.validate import check_followable, check_still_followable

    if query is None:
        check_still_followable(dsn, row[0])
    else:
        check_followable(dsn, name, str(query))


def _is_differential(mode: str | bool | None) -> bool:
    return isinstance(mode, str) and mode.strip().upper() == "DIFFERENTIAL"


def call(connection: Connection, function: str, arguments: Options) -> list[str]:
    """Call a SQL function, retrying on contention; return one text for each notice."""
    _, notices = call_for_text(connection, function, arguments)
    return notices


def call_for_text(connection: Connection, function: str, arguments: Options) -> tuple[str, list[str]]:
    """Call a SQL function like `call`; return what it returns, as text, and the notices."""
    notices: list[str] = []
    results: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(_notice_text(notice)))

    def attempt() -> None:
        notices.clear()
        with connection.transaction():
            row = connection.execute(_statement(function, arguments), tuple(arguments.values())).fetchone()
            assert row is not None
            results.append(str(row[0]))

    declaring(connection, lambda: _retry(attempt))
    return results[-1], notices


def _call_as(dsn: str, owner: str, function: str, arguments: Options) -> None:
    """Call a SQL function with the rights of another role.

    It is called twice, and the first call is rolled back: it checks what the query reaches. So nothing that
    fails these checks is part of a transaction that commits.
    """
    given = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in arguments.items()
    )
    statement = sql.SQL("select {}({})").format(sql.Identifier("pgtrickle", function), given)
    for is_kept in (False, True):
        with open_installed(dsn) as connection:
            run = partial(execute_as, dsn, owner, statement, is_kept=is_kept)
            declaring(connection, partial(_retry, run))


def _retry(attempt: Callable[[], None]) -> None:
    """Try again after a short pause if another session was in the way."""
    for pause in (*RETRY_PAUSES, None):
        try:
            attempt()
            return
        except (DatabaseError, Busy) as error:
            if isinstance(error, DatabaseError) and error.sqlstate not in _RETRYABLE:
                raise
            if pause is None and isinstance(error, DatabaseError):
                raise _busy(error) from error
            if pause is None:
                raise
            sleep(pause)


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
    hint = error.diag.message_hint or "try again when the other session has finished"
    return Busy(message, hint=hint, detail=error.diag.message_detail)
