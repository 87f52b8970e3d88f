"""What comes of refreshing a stream table: an outcome, or the error that a person reads."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.blaming import explained


@dataclass(frozen=True, slots=True)
class Failure:
    """A refresh that left everything as it was."""

    table: StreamTable
    error: PgTrickleError


Result = RefreshOutcome | Failure


def left_out(table: RelationName, reason: str) -> RefreshOutcome:
    """It was not refreshed this time, and nothing is wrong with it."""
    return RefreshOutcome(table, Action.SKIP, 0, 0, 0.0, reason)


def name_of(result: Result) -> RelationName:
    """The stream table of a result."""
    return result.name if isinstance(result, RefreshOutcome) else result.table.name


def has_moved(result: Result) -> bool:
    """Whether the stream table was refreshed."""
    return isinstance(result, RefreshOutcome) and result.action is not Action.SKIP


def failure_of(table: StreamTable, error: PgTrickleError | DatabaseError) -> Failure:
    """The failure of a table, explained."""
    return Failure(table, explained(table, error))
