"""What a worker does with a unit: refresh it, record failures, and read the new states of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from pgtrickle.catalog.requests import answer_refused
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.errors import (
    Busy,
    ConnectionFailed,
    CopiedDatabase,
    NotInstalled,
    PgTrickleError,
    RefreshFailed,
    SparkLost,
    UnknownStreamTable,
)
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTableId
from pgtrickle.pipeline.supply import SparkChange
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.outcome import HELD, has_moved, name_of, not_refreshed
from pgtrickle.refresh.story import Failure, Result, refresh_all
from pgtrickle.scheduler.policy.definitions import TableDefinition, TableState
from pgtrickle.scheduler.policy.units import Unit
from pgtrickle.scheduler.service.failures import attempted_action, note_failure
from pgtrickle.scheduler.service.load_definitions import load_definitions
from pgtrickle.scheduler.service.vitals import Vitals

SPARK: Final = "Spark"
"""The subject of events about Spark."""


class EventKind(Enum):
    """What an event is about."""

    REFRESH = "refresh"
    """A stream table was refreshed."""
    FAILURE = "failure"
    """A refresh of a stream table failed."""
    PROGRESS = "progress"
    """A stream table is being loaded, and it takes a while."""
    WARNING = "warning"
    """Something about a stream table needs attention; no refresh failed."""
    OUTAGE = "outage"
    """The database or Spark is gone."""
    RECOVERY = "recovery"
    """It is back."""


@dataclass(frozen=True, slots=True, repr=False)
class RefreshEvent(Record):
    """Something that happened to a stream table, or to the sidecar if the name is empty.

    `note` says what happened if it is neither a refresh nor an error, `subject` to which part of the sidecar,
    and `seconds` how long an outage lasted that is over. `attempted` is what a failed refresh tried to do.
    The note of a warning says what needs attention.
    """

    name: RelationName
    at: datetime
    outcome: RefreshOutcome | None = None
    error: PgTrickleError | None = None
    note: str | None = None
    subject: str = "database"
    seconds: float | None = None
    attempted: Action | None = None
    database: str | None = None
    """The database, if the process serves several."""
    is_warning: bool = False

    @property
    def kind(self) -> EventKind:
        """What the event is about."""
        if self.outcome is not None:
            return EventKind.REFRESH
        if self.error is not None:
            return EventKind.FAILURE if self.name.name else EventKind.OUTAGE
        if self.is_warning:
            return EventKind.WARNING
        return EventKind.PROGRESS if self.name.name else EventKind.RECOVERY


def database_event(
    *,
    note: str | None = None,
    error: PgTrickleError | None = None,
    seconds: float | None = None,
    database: str | None = None,
) -> RefreshEvent:
    """An event that is about a whole database, as of now."""
    now = datetime.now(UTC)
    return RefreshEvent(RelationName("", ""), now, note=note, error=error, seconds=seconds, database=database)


def spark_event(change: SparkChange) -> RefreshEvent:
    """The event that tells what has happened to Spark."""
    note = change.text if change.lost is None else None
    return replace(database_event(note=note, error=change.lost, seconds=change.seconds), subject=SPARK)


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The result of a unit: the new states of its tables, and those that were not refreshed.

    Another session holds those, or a table they read failed; they are tried again after a short pause.
    """

    unit: Unit
    states: Mapping[StreamTableId, TableState]
    left_out: frozenset[StreamTableId]
    milliseconds: Mapping[RelationName, float]
    statement_ms: float = 0.0
    """How long PostgreSQL was busy with it: reading and applying."""


def refresh_unit(
    engine: Engine,
    unit: Unit,
    initiated_by: str,
    on_event: Callable[[RefreshEvent], None],
    vitals: Vitals,
    max_errors: int,
    queued_at: float | None = None,
) -> UnitResult:
    """Refresh the tables of a unit; raises ConnectionFailed if the database is gone."""
    started = datetime.now(UTC)
    try:
        results = _results(engine, unit, initiated_by, queued_at)
        for result in results:
            if isinstance(result, Failure) and engine.is_abandoned:
                # it failed because it was canceled, which is not the table's fault
                continue
            if isinstance(result, Failure):
                with engine.connection() as connection:
                    note_failure(connection, result, started, initiated_by, max_errors)
            _tell(result, on_event, vitals)
        with engine.connection() as connection:
            definitions, states = load_definitions(connection, unit.tables)
            for table, refusal in _refusals(results, definitions):
                # it stays as it is until a person acts, so the requests for it are answered now
                answer_refused(connection, (table,), refusal)
            connection.commit()
    except DatabaseError as error:
        raise ConnectionFailed(
            f"the connection of a refresh was lost: {str(error).strip()}", hint="the sidecar tries again"
        ) from error
    moved = {name_of(result) for result in results if isinstance(result, Failure) or has_moved(result)}
    left_out = frozenset(i for i, definition in definitions.items() if definition.name not in moved)
    took = {r.name: r.milliseconds for r in results if isinstance(r, RefreshOutcome)}
    parts = ((r.read_ms, r.apply_ms, r.commit_ms) for r in results if isinstance(r, RefreshOutcome))
    busy = sum(part or 0.0 for three in parts for part in three)
    return UnitResult(unit, states, left_out, took, busy)


def _results(engine: Engine, unit: Unit, initiated_by: str, queued_at: float | None) -> list[Result]:
    """The result of each table; if they cannot be refreshed together, each is tried alone."""
    try:
        return refresh_all(engine, unit.tables, initiated_by=initiated_by, waits=False, asked_at=queued_at)
    except Busy:
        return []
    except SparkLost as lost:
        # Spark is started again and the tables wait for it; those that keep killing it have failed
        return [
            result
            for table in unit.tables
            if engine.key(table) in lost.blamed
            for result in _failed_results(engine, table, lost)
        ]
    except (ConnectionFailed, CopiedDatabase, NotInstalled, DatabaseError):
        raise
    except Exception as error:
        # no failure of a refresh may stop the sidecar or the other tables
        if len(unit.tables) == 1:
            return _failed_results(engine, unit.tables[0], error)
    return [
        result
        for table in unit.tables
        for result in _results(engine, Unit((table,)), initiated_by, queued_at)
    ]


def _failed_results(engine: Engine, table: StreamTableId, error: Exception) -> list[Result]:
    if not isinstance(error, PgTrickleError):
        told = RefreshFailed(f"the refresh failed: {type(error).__name__}: {error}")
        told.__cause__ = error
        error = told
    with engine.connection() as connection:
        try:
            return [Failure(stream_table(connection, table), error)]
        except UnknownStreamTable:
            return []


def _refusals(
    results: Sequence[Result], definitions: Mapping[StreamTableId, TableDefinition]
) -> Iterator[tuple[StreamTableId, PgTrickleError]]:
    """The tables that were left out and why, except those that another session holds."""
    failed = {str(result.table.name): result.error for result in results if isinstance(result, Failure)}
    ids = {definition.name: table for table, definition in definitions.items()}
    for result in results:
        if isinstance(result, Failure) or result.action is not Action.SKIP or result.reason == HELD:
            continue
        causes = (error for name, error in failed.items() if f"waits for {name}," in result.reason)
        if result.name in ids:
            yield ids[result.name], next(causes, not_refreshed(result))


def _tell(result: Result, on_event: Callable[[RefreshEvent], None], vitals: Vitals) -> None:
    now = datetime.now(UTC)
    if isinstance(result, Failure):
        vitals.count("failures")
        attempted = attempted_action(result.table)
        on_event(RefreshEvent(result.table.name, now, error=result.error, attempted=attempted))
        return
    vitals.note_refresh(result.action)
    if result.action is not Action.SKIP:
        on_event(RefreshEvent(result.name, now, outcome=result))
