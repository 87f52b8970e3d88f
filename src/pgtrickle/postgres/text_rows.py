"""Rows as text, as the output functions of their types print them, in bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import Connection

LONGEST_VALUE: Final = 2000
"""Longer values are cut, with an ellipsis."""


@dataclass(frozen=True, slots=True, repr=False)
class ResultColumn(Record):
    """A column of a result, with its type as SQL."""

    name: str
    type: str


def as_text_array(query: sql.Composable, columns: int, limit: int) -> sql.Composed:
    """A query that returns at most `limit` rows of another one, each as an array of texts.

    `format` calls the output function of a type. A cast could be a function that somebody has defined.
    """
    names = [sql.Identifier(f"c{number}") for number in range(columns)]
    cells = [
        sql.SQL(
            "case when pg_catalog.num_nulls({0}) operator(pg_catalog.=) 0"
            " then pg_catalog.left(pg_catalog.format('%s', {0}), {1}) end"
        ).format(name, sql.Literal(LONGEST_VALUE + 1))
        for name in names
    ]
    return sql.SQL("select array[{}]::pg_catalog.text[] from ({}) q{} limit {}").format(
        sql.SQL(", ").join(cells),
        query,
        sql.SQL("({})").format(sql.SQL(", ").join(names)) if names else sql.SQL(""),
        sql.Literal(limit),
    )


def cut(rows: Sequence[Sequence[str | None]]) -> tuple[tuple[str | None, ...], ...]:
    """The rows with an ellipsis where a value was cut."""
    return tuple(tuple(_cut(value) for value in row) for row in rows)


def read_text_rows(
    connection: Connection, query: sql.Composable, columns: int, limit: int
) -> tuple[tuple[str | None, ...], ...]:
    """At most `limit` rows of a query with this many columns, in the transaction of the caller."""
    return cut([row for (row,) in connection.execute(as_text_array(query, columns, limit))])


def _cut(value: str | None) -> str | None:
    if value is None or len(value) <= LONGEST_VALUE:
        return value
    return value[:LONGEST_VALUE] + "…"
