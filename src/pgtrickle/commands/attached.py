"""Attaches databases, and declares their tables, so that stream tables can read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, TypeVar

from pgtrickle.commands.connections import open_installed
from pgtrickle.model.errors import NotDeclared
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import Connection, DatabaseError, check_writable

Made = TypeVar("Made")
MOST_TABLES: Final = 100
"""How many tables of one query are declared on the way."""


@dataclass(frozen=True, slots=True, repr=False)
class AttachedDatabaseStatus(Record):
    """A database whose tables stream tables can read.

    `frontier` is the snapshot of it up to which its tables have been followed, or with the `cdc_mode` wal,
    `position` that in its log. Only the owner of pgtrickle sees `last_error`.
    """

    table_columns: ClassVar = ("alias", "reference", "cdc_mode", "tables", "followed_at", "failing_since")

    alias: str
    reference: str
    tables: int
    frontier: str | None
    followed_at: datetime | None
    failing_since: datetime | None
    last_error: str | None
    cdc_mode: str
    position: str | None


def attach(dsn: str, alias: str, reference: str, cdc_mode: str = "trigger") -> None:
    """Make a database of the sidecar's configuration known by an alias."""
    _call(dsn, "select pgtrickle.attach_database(%s, %s, %s)", alias, reference, cdc_mode)


def detach(dsn: str, alias: str) -> None:
    """Forget an attached database."""
    _call(dsn, "select pgtrickle.detach_database(%s)", alias)


def declare(dsn: str, alias: str, schema: str, table: str) -> str:
    """Let queries read a table of an attached database; return its stand-in, once the sidecar has made it."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        connection.execute("select pgtrickle.declare_source(%s, %s, %s)", (alias, schema, table))
        row = connection.execute(
            "select pgtrickle_internal.stand_in(%s, %s, %s)", (alias, schema, table)
        ).fetchone()
        assert row is not None
        return str(row[0])


def attached(dsn: str) -> list[AttachedDatabaseStatus]:
    """The attached databases, by alias."""
    with open_installed(dsn) as connection:
        rows = connection.execute(
            "select alias, reference, tables, frontier::text, followed_at, failing_since, last_error,"
            " cdc_mode, position::text"
            " from pgtrickle.attached_databases where not is_detached order by alias"
        )
        return [AttachedDatabaseStatus(*row) for row in rows]


def declaring(connection: Connection, attempt: Callable[[], Made]) -> Made:
    """Do something with a query; declare the tables of attached databases that it names on the way.

    The connection must be outside of a transaction between attempts. If its role may not declare a table,
    the error of the attempt is raised, which says what to do.
    """
    for _ in range(MOST_TABLES):
        try:
            return attempt()
        except DatabaseError as error:
            named = (error.diag.constraint_name, error.diag.schema_name, error.diag.table_name)
            if error.sqlstate != NotDeclared.sqlstate or not all(named):
                raise
            try:
                with connection.transaction():
                    connection.execute("select pgtrickle.declare_source(%s, %s, %s)", named)
            except DatabaseError:
                raise error from None
    return attempt()


def _call(dsn: str, statement: str, *values: str) -> None:
    with open_installed(dsn) as connection:
        check_writable(connection)
        connection.execute(statement, values)
