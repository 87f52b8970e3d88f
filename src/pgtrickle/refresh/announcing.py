"""Telling listeners how a refresh went, for stream tables whose events may be told.

Alerts reach every role of the database. So an error is told by its code: its message may quote a value,
and is in the history for those who may act for the owner. A reason that quotes one is replaced.
"""

from __future__ import annotations

from pgtrickle.catalog.alerts import alert
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.compiling import BEHIND

COMPLETED, FAILED = "refresh_completed", "refresh_failed"
_QUOTES_A_VALUE = "a value that only PostgreSQL can compute with"


def announce_completed(
    connection: Connection, table: StreamTable, outcome: RefreshOutcome, *, is_asked: bool, is_behind: bool
) -> None:
    """Tell what a refresh did; one that found nothing is worth it only if somebody asked for it."""
    if table.is_pooler_compatible or (outcome.action is Action.NO_DATA and not is_asked):
        return
    quotes_a_value = is_behind or (table.reinit_reason or "").startswith(BEHIND)
    alert(
        connection,
        COMPLETED,
        pgt_id=table.id,
        action=outcome.action.value,
        rows_inserted=outcome.rows_inserted,
        rows_deleted=outcome.rows_deleted,
        milliseconds=round(outcome.milliseconds, 3),
        reason=_QUOTES_A_VALUE if quotes_a_value else outcome.reason,
    )


def announce_failed(connection: Connection, table: StreamTable, error: PgTrickleError) -> None:
    """Tell that a refresh failed, and by which code."""
    if table.is_pooler_compatible:
        return
    cause = error.__cause__
    found = cause.sqlstate if isinstance(cause, DatabaseError) else None
    alert(connection, FAILED, pgt_id=table.id, error=error.code, sqlstate=found or type(error).sqlstate)
