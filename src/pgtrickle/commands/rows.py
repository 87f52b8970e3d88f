"""Reads some rows of a stream table, as PostgreSQL prints them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.model.errors import UnknownStreamTable, UntrustedCode
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load
from pgtrickle.postgres.text_rows import ResultColumn, read_text_rows

SECONDS: Final = 10
_RELATION: Final = ("pgtrickle.commands", "sql/relation_of.sql")


@dataclass(frozen=True, slots=True, repr=False)
class TableRows(Record):
    """Some rows. Long values are cut; `is_truncated` says that there are more rows."""

    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[str | None, ...], ...]
    is_truncated: bool


def table_rows(dsn: str, name: str, limit: int = 20) -> TableRows:
    """Some rows of a stream table, in no particular order, within a few seconds."""
    with open_installed(dsn) as connection, connection.transaction(force_rollback=True):
        connection.execute("set transaction read only")
        connection.execute(sql.SQL("set local statement_timeout = {}").format(sql.Literal(f"{SECONDS}s")))
        # a policy of the owner would run with our rights
        connection.execute("set local row_security = off")
        table, columns = _locked(connection, check_known(connection, name))
        query = sql.SQL("select * from only {}").format(table)
        rows = read_text_rows(connection, query, len(columns), limit + 1)
    return TableRows(columns, rows[:limit], len(rows) > limit)


def table_columns(dsn: str, name: str) -> tuple[ResultColumn, ...]:
    """The columns of a stream table."""
    with open_installed(dsn) as connection:
        known = check_known(connection, name)
        row = connection.execute(load(*_RELATION), {"name": known}).fetchone()
    if row is None:
        raise UnknownStreamTable(f"there is no stream table {name} any more")
    return tuple(ResultColumn(*column) for column in row[3])


def _locked(connection: Connection, name: str) -> tuple[sql.Identifier, tuple[ResultColumn, ...]]:
    """Lock a stream table against being renamed; return its name and its columns.

    Otherwise its owner could put a view in its place, whose functions would run with our rights.
    """
    row = connection.execute(load(*_RELATION), {"name": name}).fetchone()
    if row is None:
        raise UnknownStreamTable(f"there is no stream table {name} any more")
    table = sql.Identifier(row[0], row[1])
    connection.execute(sql.SQL("lock table only {} in access share mode").format(table))
    if connection.execute(load(*_RELATION), {"name": name}).fetchone() != row:
        raise UnknownStreamTable(f"stream table {name} was altered meanwhile", hint="try again")
    _check_code(connection, name, row[2])
    return table, tuple(ResultColumn(*column) for column in row[3])


def _check_code(connection: Connection, name: str, relation: int) -> None:
    """Raise if PostgreSQL would run code of the owner, with our rights, while it plans to read the table."""
    row = connection.execute(
        "select pgtrickle_internal.untrusted_of(%s::oid, quote_ident(current_user)::regrole)", (relation,)
    ).fetchone()
    if row is not None and row[0] is not None:
        raise UntrustedCode(
            f"reading {name} would run code of its owner with your rights: {row[0]}",
            hint="drop what is named, or let an administrator own that function",
        )
