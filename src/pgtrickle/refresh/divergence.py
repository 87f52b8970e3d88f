"""Stream tables that diverged from their query: how they are compared, repaired, and the evidence kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from pgtrickle.catalog.repairs import Cause, close_repairs, note_repair, open_repairs
from pgtrickle.model.errors import Diverged, RefreshFailed
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, DatabaseError, set_locally, sql
from pgtrickle.postgres.statements import load
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.outcome import Failure, Result
from pgtrickle.refresh.session import Session, evaluating_query

REASONS: Final = {
    Cause.DIVERGED: "it did not hold the rows that a change took away",
    Cause.VERIFIED: "it did not equal its query when it was verified",
}
"""Every role can read these in the history, so they quote no rows."""
EVIDENCE_SHARE: Final = 0.25
"""The part of the remaining time of a refresh that the comparison for the evidence may take."""
SHOWN: Final = 10
"""At most this many rows are shown."""


def repairable_failures(results: list[Result]) -> list[Failure]:
    """The failures that a load of all rows can repair: a table diverged, and was not being loaded."""
    return [
        result
        for result in results
        if isinstance(result, Failure)
        and isinstance(result.error, Diverged)
        and result.table.repairs_itself
        and result.table.is_populated
        and result.table.reinit_reason is None
    ]


def note_divergence(
    connection: Connection, table: StreamTable, error: Diverged, cause: Cause, found_by: str
) -> None:
    """Keep the evidence; the next refresh loads the table again, unless it is set to stop.

    The caller commits.
    """
    note_repair(connection, table.id, cause, REASONS[cause], found_by, error.rows or (error.message,))


def end_repairs(
    session: Session, table: StreamTable, compilation: Compilation, seconds_left: float | None
) -> None:
    """Record which rows differ before a load overwrites them, in the same transaction.

    The comparison uses the snapshot of the load, so rows of pending changes differ too. It is given up if it
    takes too long: the load needs the time.
    """
    repairs = open_repairs(session.write, table.id)
    if not repairs:
        return
    differing: Difference | None = None
    # a failed comparison must not prevent the repair
    with (
        suppress(DatabaseError, RefreshFailed),
        session.read.transaction(),
        evaluating_query(session.read, table.settings),
        _limited_time(session.read, seconds_left),
    ):
        differing = difference(session.read, table, compilation.answer)
    close_repairs(
        session.write,
        repairs,
        None if differing is None else differing.unexpected,
        None if differing is None else differing.missing,
    )


@contextmanager
def _limited_time(connection: Connection, seconds_left: float | None) -> Iterator[None]:
    """Limit statements to a part of the remaining time; after an error, a rollback undoes the limit."""
    if seconds_left is None:
        yield
        return
    row = connection.execute("select current_setting('statement_timeout')").fetchone()
    assert row is not None
    set_locally(connection, {"statement_timeout": str(max(1, round(seconds_left * EVIDENCE_SHARE * 1000)))})
    yield
    set_locally(connection, {"statement_timeout": row[0]})


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows as text: those that the table should not hold, and those that are missing from it."""

    unexpected: tuple[str, ...]
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.unexpected or self.missing)

    @property
    def rows(self) -> tuple[str, ...]:
        """All rows, each with what is wrong with it."""
        return (
            *(f"unexpected {row}" for row in self.unexpected),
            *(f"missing {row}" for row in self.missing),
        )


def difference(connection: Connection, table: StreamTable, query: str) -> Difference:
    """Compare a table with its query as multisets, in both directions, in the snapshot of the connection."""
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
