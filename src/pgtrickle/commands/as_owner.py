"""Does something with the rights of another role, and no others, whatever code that role has prepared.

PostgreSQL runs code while it parses and plans a query: constraints of domains, functions of constants. After
a plain SET ROLE, such code could change back to the login role. So a function that belongs to the other role
and is SECURITY DEFINER does the work: within it, PostgreSQL refuses SET ROLE. The function is temporary and
called once, because its owner could replace it; after the call, the session is used for nothing but the end
of its transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pgtrickle.commands.connections import open_as_author
from pgtrickle.postgres.connection import Connection, check_writable, sql
from pgtrickle.postgres.statements import load

_PACKAGE: Final = "pgtrickle.commands"


def analyse_as(dsn: str, owner: str, query: str, name: str) -> tuple[Any, ...]:
    """What `sql/owner_analysis.sql` returns for a query. Nothing is kept."""
    with open_as_author(dsn) as connection, connection.transaction(force_rollback=True):
        _create(connection, owner, "owner_analysis")
        row = connection.execute("select * from pg_temp.pgtrickle_analysis(%s, %s)", (query, name)).fetchone()
    assert row is not None
    return row


def execute_as(dsn: str, owner: str, statement: sql.Composed, *, is_kept: bool) -> None:
    """Execute one statement and commit it, or roll it back."""
    with open_as_author(dsn) as connection:
        check_writable(connection)
        with connection.transaction(force_rollback=not is_kept):
            _create(connection, owner, "owner_statement")
            connection.execute("select pg_temp.pgtrickle_statement(%s)", (statement.as_string(connection),))


@contextmanager
def reading_as(dsn: str, owner: str | None, seconds: float) -> Iterator[Connection]:
    """A connection on which `read_rows` can be called once, read only and for a limited time."""
    with open_as_author(dsn) as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "select pg_catalog.set_config('statement_timeout', %s, true)", (str(int(seconds * 1000)),)
        )
        _create(connection, owner, "owner_rows")
        connection.execute("set transaction read only")
        yield connection


def read_rows(connection: Connection, query: sql.Composed) -> list[list[str | None]]:
    """The rows of a query that selects an array of texts."""
    text = query.as_string(connection)
    return [row for (row,) in connection.execute("select * from pg_temp.pgtrickle_rows(%s)", (text,))]


def _create(connection: Connection, owner: str | None, function: str) -> None:
    """Create a function that belongs to another role; raise unless the login role is a member of it."""
    statement = load(_PACKAGE, f"sql/{function}.sql")
    if owner is None:
        connection.execute(statement)
        return
    row = connection.execute("select pg_catalog.current_setting('role')").fetchone()
    assert row is not None
    _set_role(connection, owner)
    connection.execute(statement)
    _set_role(connection, row[0])


def _set_role(connection: Connection, role: str) -> None:
    connection.execute("select pg_catalog.set_config('role', %s, true)", (role,))
