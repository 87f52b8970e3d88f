"""The outcome of a refresh: a result for the caller, a record in the catalog, an alert for listeners.

Alerts reach every role of the database. So an alert names an error by its code: the message may quote a
value, and is in the history for roles that may act for the owner. A reason that quotes a value is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.apply.write import Applied
from pgtrickle.catalog.alerts import alert, alert_each
from pgtrickle.catalog.outcomes import Refreshed, mark_reinit, revert_append_only
from pgtrickle.model.errors import PgTrickleError, Suspended
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.hints import call
from pgtrickle.model.names import RelationName
from pgtrickle.model.phases import PhaseTimes
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.model.tracing import Span, SpanValue
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.compilation import BEHIND
from pgtrickle.refresh.decide.action import Step, note_cost
from pgtrickle.refresh.decide.windows import start_of
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.faults import explained_error
from pgtrickle.refresh.session import Session

HELD = "another session is refreshing it"
"""Why a table is left out that may be refreshed a moment later."""
COMPLETED, FAILED = "refresh_completed", "refresh_failed"
_QUOTES_A_VALUE = "a value that only PostgreSQL can compute with"


@dataclass(frozen=True, slots=True)
class Failure:
    """A refresh that failed and changed nothing."""

    table: StreamTable
    error: PgTrickleError


Result = RefreshOutcome | Failure


@dataclass(frozen=True, slots=True)
class Effect:
    """How many rows were written, how many Spark returned, and a note on how they were computed."""

    applied: Applied
    delta_rows: int
    note: str = ""


NOTHING = Effect(Applied(0, 0), 0)


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """A step that was carried out: its outcome for the caller, and its record for the catalog."""

    step: Step
    outcome: RefreshOutcome
    record: Refreshed


def left_out(table: RelationName, reason: str) -> RefreshOutcome:
    """The outcome of a table that was not refreshed this time, without an error."""
    return RefreshOutcome(table, Action.SKIP, 0, 0, 0.0, reason)


def not_refreshed(outcome: RefreshOutcome) -> Suspended:
    """The error for someone who asked for a refresh of a table that was left out."""
    return Suspended(
        f"{outcome.name} was not refreshed: {outcome.reason}",
        hint=f"to resume it, run {call('resume_stream_table', outcome.name)}",
    )


def name_of(result: Result) -> RelationName:
    """The stream table of a result."""
    return result.name if isinstance(result, RefreshOutcome) else result.table.name


def has_moved(result: Result) -> bool:
    """Whether the stream table was refreshed."""
    return isinstance(result, RefreshOutcome) and result.action is not Action.SKIP


def failure_of(table: StreamTable, error: PgTrickleError | DatabaseError) -> Failure:
    """The failure of a table, with an error that explains it."""
    return Failure(table, explained_error(table, error))


def note_results(span: Span, results: Sequence[Result]) -> None:
    """Add the results of a refresh to its span: each as an event, and the only one to the span itself."""
    for result in results:
        values: dict[str, SpanValue] = {"table": str(name_of(result))}
        if isinstance(result, RefreshOutcome):
            values |= {
                "strategy": result.action.value,
                "rows_inserted": result.rows_inserted,
                "rows_deleted": result.rows_deleted,
                "milliseconds": result.milliseconds,
            }
        else:
            values["error"] = result.error.code
            span.fail(result.error.code)
        span.note_event("failed" if isinstance(result, Failure) else "refreshed", **values)
        if len(results) == 1:
            span.note(**values)


def completed_step(
    session: Session, step: Step, effect: Effect, initiated_by: str, times: PhaseTimes
) -> CompletedStep:
    """The outcome and the record of a step, and how long it took."""
    inserted, deleted = effect.applied.inserted, effect.applied.deleted
    reason = step.reason + effect.note
    record = Refreshed(
        action=step.action,
        started_at=step.started_at,
        data_timestamp=session.taken_at,
        frontier=session.frontier,
        upstream=session.upstream_frontier() if step.compilation.upstream else None,
        rows_inserted=inserted,
        rows_deleted=deleted,
        delta_rows=effect.delta_rows,
        reason=reason,
        initiated_by=initiated_by,
        milliseconds=times.total_ms,
        times=times,
        change_rows=step.change_rows,
        strategy=step.strategy.value if step.strategy else None,
        state_is_behind=step.leaves_state_behind,
    )
    outcome = RefreshOutcome(
        step.table.name,
        step.action,
        inserted,
        deleted,
        times.total_ms,
        reason,
        read_ms=times.read_ms,
        compute_ms=times.compute_ms,
        apply_ms=times.apply_ms,
    )
    return CompletedStep(step, outcome, record)


def settle(engine: Engine, session: Session, completed: CompletedStep) -> None:
    """After the record is written: advance the caches of the process, and note what follows for the table."""
    step, record = completed.step, completed.record
    table = step.table

    def moved(source: Source) -> tuple[Frontier | None, Frontier | None]:
        is_upstream = source.kind is SourceKind.STREAM_TABLE
        return start_of(table, source), record.upstream if is_upstream else record.frontier

    if record.action is Action.REINITIALIZE:
        # it was loaded again because a change may have been missed
        engine.kept.forget(table.id)
    else:
        engine.kept.advance(table.id, frozenset(window.relation for window in step.windows), moved)
    note_cost(engine, step, record.milliseconds, session.taken_at)
    if table.is_append_only and record.rows_deleted and record.action is not Action.REINITIALIZE:
        revert_append_only(session.write, table.id)
    if step.compilation.state_is_behind:
        mark_reinit(session.write, table.id, step.compilation.state_is_behind)


def announce_completed(connection: Connection, steps: Sequence[CompletedStep]) -> None:
    """Send the alerts of refreshes; one that found no change is announced only if a user asked for it."""
    if announced := [_facts(completed) for completed in steps if _is_announced(completed)]:
        alert_each(connection, COMPLETED, announced)


def _is_announced(completed: CompletedStep) -> bool:
    is_asked = completed.record.initiated_by == "manual"
    is_idle = completed.outcome.action is Action.NO_DATA and not is_asked
    return not is_idle and not completed.step.table.is_pooler_compatible


def _facts(completed: CompletedStep) -> dict[str, object]:
    table, outcome = completed.step.table, completed.outcome
    is_behind = completed.step.compilation.state_is_behind is not None
    quotes_a_value = is_behind or (table.reinit_reason or "").startswith(BEHIND)
    return {
        "pgt_id": table.id,
        "action": outcome.action.value,
        "rows_inserted": outcome.rows_inserted,
        "rows_deleted": outcome.rows_deleted,
        "milliseconds": round(outcome.milliseconds, 3),
        "data_timestamp": completed.record.data_timestamp,
        "reason": _QUOTES_A_VALUE if quotes_a_value else outcome.reason,
    }


def announce_failed(connection: Connection, table: StreamTable, error: PgTrickleError) -> None:
    """Send the alert of a failed refresh, with the code of its error."""
    cause = error.__cause__
    found = cause.sqlstate if isinstance(cause, DatabaseError) else None
    alert(connection, FAILED, pgt_id=table.id, error=error.code, sqlstate=found or type(error).sqlstate)
