"""What a worker does with a unit: refresh it, record failures, and read the new states of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

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
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTableId
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.outcome import has_moved, name_of
from pgtrickle.refresh.story import Failure, Result, refresh_all
from pgtrickle.scheduler.policy.definitions import TableState
from pgtrickle.scheduler.policy.units import Unit
from pgtrickle.scheduler.service.failures import note_failure
from pgtrickle.scheduler.service.load_definitions import load_definitions
from pgtrickle.scheduler.service.vitals import Vitals


@dataclass(frozen=True, slots=True)
class RefreshEvent:
    """Something that happened to a stream table, or to the sidecar if the name is empty.

    `note` says what happened to the sidecar if it is not an error.
    """

    name: RelationName
    at: datetime
    outcome: RefreshOutcome | None = None
    error: PgTrickleError | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The result of a unit: the new states of its tables, and those that were not refreshed.

    Another session holds those, or a table they read failed; they are tried again after a short pause.
    """

    unit: Unit
    states: Mapping[StreamTableId, TableState]
    left_out: frozenset[StreamTableId]
    milliseconds: Mapping[RelationName, float]


def refresh_unit(
    engine: Engine,
    unit: Unit,
    initiated_by: str,
    on_event: Callable[[RefreshEvent], None],
    vitals: Vitals,
    max_errors: int,
) -> UnitResult:
    """Refresh the tables of a unit; raises ConnectionFailed if the database is gone."""
    started = datetime.now(UTC)
    try:
        results = _results(engine, unit, initiated_by)
        for result in results:
            if isinstance(result, Failure) and engine.is_abandoned:
                # it failed because it was cancelled, which is not the table's fault
                continue
            if isinstance(result, Failure):
                with engine.connection() as connection:
                    note_failure(connection, result, started, initiated_by, max_errors)
            _tell(result, on_event, vitals)
        with engine.connection() as connection:
            definitions, states = load_definitions(connection, unit.tables)
    except DatabaseError as error:
        raise ConnectionFailed(
            f"the connection of a refresh was lost: {str(error).strip()}", hint="it is tried again"
        ) from error
    moved = {name_of(result) for result in results if isinstance(result, Failure) or has_moved(result)}
    left_out = frozenset(i for i, definition in definitions.items() if definition.name not in moved)
    took = {r.name: r.milliseconds for r in results if isinstance(r, RefreshOutcome)}
    return UnitResult(unit, states, left_out, took)


def _results(engine: Engine, unit: Unit, initiated_by: str) -> list[Result]:
    """The result of each table; if they cannot be refreshed together, each is tried alone."""
    try:
        return refresh_all(engine, unit.tables, initiated_by=initiated_by, waits=False)
    except Busy:
        return []
    except SparkLost as lost:
        # Spark is started again and the tables wait for it; those that keep killing it have failed
        return [
            result for table in unit.tables if table in lost.blamed for result in _failed(engine, table, lost)
        ]
    except (ConnectionFailed, CopiedDatabase, NotInstalled, DatabaseError):
        raise
    except Exception as error:
        # no failure of a refresh may stop the sidecar or the other tables
        if len(unit.tables) == 1:
            return _failed(engine, unit.tables[0], error)
    return [result for table in unit.tables for result in _results(engine, Unit((table,)), initiated_by)]


def _failed(engine: Engine, table: StreamTableId, error: Exception) -> list[Result]:
    if not isinstance(error, PgTrickleError):
        told = RefreshFailed(f"the refresh failed: {type(error).__name__}: {error}")
        told.__cause__ = error
        error = told
    with engine.connection() as connection:
        try:
            return [Failure(stream_table(connection, table), error)]
        except UnknownStreamTable:
            return []


def _tell(result: Result, on_event: Callable[[RefreshEvent], None], vitals: Vitals) -> None:
    now = datetime.now(UTC)
    if isinstance(result, Failure):
        vitals.count("failures")
        on_event(RefreshEvent(result.table.name, now, error=result.error))
        return
    vitals.note_refresh(result.action)
    if result.action is not Action.SKIP:
        on_event(RefreshEvent(result.name, now, outcome=result))
