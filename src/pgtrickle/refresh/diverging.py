"""Stream tables that do not hold the rows they should hold: they repair themselves, and keep the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pgtrickle.catalog.repairs import Cause, close_repairs, note_repair, open_repairs
from pgtrickle.model.errors import Diverged, RefreshFailed
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, DatabaseError, set_locally
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.differences import Difference, difference
from pgtrickle.refresh.results import Failure, Result
from pgtrickle.refresh.session import Session, evaluating_query

REASONS: Final = {
    Cause.DIVERGED: "it did not hold the rows that a change took away",
    Cause.VERIFIED: "it did not equal its query when it was verified",
}
"""Everybody may read these in the history, so they quote no rows."""
EVIDENCE_SHARE: Final = 0.25
"""The comparison for the evidence may take this part of the time that the refresh has left."""


def self_repairs(results: list[Result]) -> list[Failure]:
    """The failures that a load of all rows can repair: a table diverged, and was not just being loaded."""
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
    """Keep the evidence; the next refresh loads the table anew, unless it is to stop. The caller commits."""
    note_repair(connection, table.id, cause, REASONS[cause], found_by, error.rows or (error.message,))


def end_repairs(session: Session, table: StreamTable, found: Compilation, seconds_left: float | None) -> None:
    """Before a load overwrites the rows that are wrong: keep which ones differ, in the same transaction.

    The comparison is of the load's own snapshot, so rows of changes that were pending differ too. One that
    takes too long is given up: the load needs its time.
    """
    repairs = open_repairs(session.write, table.id)
    if not repairs:
        return
    differing: Difference | None = None
    # the evidence must not keep the table from being repaired
    with (
        suppress(DatabaseError, RefreshFailed),
        session.read.transaction(),
        evaluating_query(session.read, table.settings),
        _bounded(session.read, seconds_left),
    ):
        differing = difference(session.read, table, found.answer)
    close_repairs(
        session.write,
        repairs,
        None if differing is None else differing.unexpected,
        None if differing is None else differing.missing,
    )


@contextmanager
def _bounded(connection: Connection, seconds_left: float | None) -> Iterator[None]:
    """Statements that PostgreSQL ends in time; an error undoes the setting with the savepoint around it."""
    if seconds_left is None:
        yield
        return
    row = connection.execute("select current_setting('statement_timeout')").fetchone()
    assert row is not None
    set_locally(connection, {"statement_timeout": str(max(1, round(seconds_left * EVIDENCE_SHARE * 1000)))})
    yield
    set_locally(connection, {"statement_timeout": row[0]})
