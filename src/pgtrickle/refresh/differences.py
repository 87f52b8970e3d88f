"""The rows in which a stream table differs from PostgreSQL's own answer to its query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load

SHOWN = 10
"""At most this many rows are shown; one that differs stands for all."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows as text: those that the table should not hold, and those that it lacks."""

    unexpected: tuple[str, ...]
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.unexpected or self.missing)

    @property
    def rows(self) -> tuple[str, ...]:
        """All of them, each with what is wrong with it."""
        return (
            *(f"unexpected {row}" for row in self.unexpected),
            *(f"missing {row}" for row in self.missing),
        )


def difference(connection: Connection, table: StreamTable, query: str) -> Difference:
    """Compare as bags and both ways, in the snapshot of the connection."""
    comparison = sql.SQL(cast(Any, load("pgtrickle.refresh", "sql/compare.sql"))).format(
        table=sql.Identifier(table.name.schema, table.name.name),
        query=sql.SQL(cast(Any, query.rstrip().removesuffix(";"))),
        named=sql.SQL(", ").join(map(sql.Identifier, _columns(connection, table))),
        compared=sql.SQL(", ").join(sql.SQL(cast(Any, match)) for match in table.match_columns),
        shown=sql.Literal(SHOWN),
    )
    rows = connection.execute(comparison).fetchall()
    return Difference(*(tuple(row for side, row in rows if side == sign) for sign in "+-"))


def _columns(connection: Connection, table: StreamTable) -> list[str]:
    rows = connection.execute(
        "select attname from pg_attribute where attrelid = %s and attnum > 0 and not attisdropped"
        " order by attnum",
        (table.relation,),
    ).fetchall()
    return [row[0] for row in rows]
