"""Statements that pg_stat_statements has counted, and their texts as queries that can be analysed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast
from uuid import uuid4

from pgtrickle.model.names import quoted
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load

NOT_INSTALLED: Final = (
    "pg_stat_statements is not installed, so how often statements run and how long they take is unknown;"
    " to have them counted, add it to shared_preload_libraries and run create extension pg_stat_statements"
)
QUERIES: Final = r"^\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*\(*\s*(?:select|with)\M"
REFRESHES: Final = r"^\s*refresh\s+materialized\s+view\M"
_PARAMETER: Final = re.compile(
    r"(?P<other>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"
    r"|\$(?P<number>\d+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class StatementStatistics:
    """What one statement has cost. The text has parameters such as `$1` in the place of its constants."""

    id: str
    query: str
    calls: int
    milliseconds: float
    rows: int
    hours: float

    @property
    def milliseconds_per_hour(self) -> float:
        return self.milliseconds / self.hours


class StatementLog:
    """Reads pg_stat_statements, wherever it is installed; without it, `problem` says so."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        row = connection.execute(
            "select n.nspname from pg_catalog.pg_extension e"
            " join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'"
        ).fetchone()
        self._schema = None if row is None else str(row[0])
        self.problem = NOT_INSTALLED if row is None else None

    def matching(self, pattern: str, limit: int) -> tuple[StatementStatistics, ...]:
        """The statements of our role whose text matches, those that took the most time first."""
        if self._schema is None or self.problem is not None:
            return ()
        statement = sql.SQL(cast(Any, load("pgtrickle.commands", "sql/statement_statistics.sql"))).format(
            view=sql.Identifier(self._schema, "pg_stat_statements"),
            info=sql.Identifier(self._schema, "pg_stat_statements_info"),
        )
        try:
            with self._connection.transaction():
                found = self._connection.execute(statement, {"pattern": pattern, "limit": limit})
                return rows_as(StatementStatistics, found)
        except DatabaseError as error:
            message = (error.diag.message_primary or str(error)).strip()
            self.problem = f"pg_stat_statements cannot be read: {message}"
            return ()


def parameter_numbers(query: str) -> tuple[int, ...]:
    """The numbers of the parameters in a text, in order."""
    return tuple(
        sorted({int(found["number"]) for found in _PARAMETER.finditer(query) if found["number"] is not None})
    )


def without_parameters(connection: Connection, query: str) -> str:
    """The text with a null of the right type for each parameter. PostgreSQL only analyses it.

    Raises the error of PostgreSQL if the text cannot be analysed: it may lack what a constant said.
    """
    numbers = parameter_numbers(query)
    if not numbers:
        return query
    with _prepared(connection, query) as types:

        def typed(found: re.Match[str]) -> str:
            return found[0] if found["number"] is None else f"(null::{types[int(found['number']) - 1]})"

        return _PARAMETER.sub(typed, query)


@contextmanager
def _prepared(connection: Connection, query: str) -> Iterator[list[str]]:
    """The types of the parameters of a text, as PostgreSQL finds them."""
    name = f"pgtrickle_{uuid4().hex}"
    with connection.transaction(force_rollback=True):
        connection.execute(f"prepare {quoted(name)} as {query}".encode())
        try:
            row = connection.execute(
                "select parameter_types::text[] from pg_catalog.pg_prepared_statements where name = %s",
                (name,),
            ).fetchone()
            yield list(row[0]) if row else []
        finally:
            # a prepared statement outlives a rollback
            connection.execute(f"deallocate {quoted(name)}".encode())
