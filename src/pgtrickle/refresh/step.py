"""One stream table in a session: see what changed, decide, carry it out, and write it down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from pgtrickle.catalog.dependencies import any_changed
from pgtrickle.catalog.outcomes import Refreshed, commit_refresh, mark_reinit
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.window import SourceWindow
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.plan.program import Program
from pgtrickle.refresh.comparing import is_behind
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.differential import NOTHING, Effect, fill, follow
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.recomputing import recompute
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.sizes import is_large_load, is_large_window
from pgtrickle.refresh.windows import pending_windows, start_of


class Altered(Exception):
    """A source was altered after the query was compiled, or refreshed after it was compared."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done for a stream table, and why; begun at a time and at a tick of the clock."""

    table: StreamTable
    found: Compilation
    pending: list[SourceWindow]
    action: Action
    reason: str
    started_at: datetime
    clock: float

    @property
    def program(self) -> Program | None:
        """The program of a differential step; None if nothing follows from the change."""
        if self.found.compiled is None or self.action is not Action.DIFFERENTIAL:
            return None
        changed = frozenset(window.relation for window in self.pending)
        return self.found.compiled.program(changed | self.found.compiled.clocked)


def refreshed(
    engine: Engine, session: Session, table: StreamTable, found: Compilation, initiated_by: str
) -> RefreshOutcome:
    """Read, compute and apply in the session; the caller commits."""
    started, clock = datetime.now(UTC), time.perf_counter()
    require_unaltered(session, [(table, found)])
    session.enter(table.settings)
    pending = pending_windows(session, table, found)
    step = Step(table, found, pending, *decided(table, found, pending), started, clock)
    outcome, record = finished(session, step, carried_out(engine, session, step), initiated_by)
    commit_refresh(session.write, table.id, record)
    settle(engine, session, step, record)
    return outcome


def require_unaltered(session: Session, tables: list[tuple[StreamTable, Compilation]]) -> None:
    """Raise if a query no longer fits its sources as the session sees them."""
    copied = {source for _, found in tables for source in found.copied}
    if any_changed(session.read, [table.id for table, _ in tables]) or is_behind(session.read, copied):
        raise Altered


def decided(table: StreamTable, found: Compilation, pending: list[SourceWindow]) -> tuple[Action, str]:
    """Which action this window gets, and why."""
    if not table.is_populated:
        return Action.REINITIALIZE, "first load"
    if table.reinit_reason:
        return Action.REINITIALIZE, table.reinit_reason
    if not pending and not found.follows_clock:
        return Action.NO_DATA, "no source has changed"
    if found.compiled is None:
        return Action.FULL, found.reason
    names = {source.relation: source.name for source in found.sources}
    for window in pending:
        if window.is_truncated:
            return Action.FULL, f"{names[window.relation]} was truncated"
    rows = sum(window.rows for window in pending)
    moved = ", and the clock moved" if found.compiled.clocked else ""
    return Action.DIFFERENTIAL, f"{rows} change rows{moved}"


def carried_out(engine: Engine, session: Session, step: Step) -> Effect:
    """Do what was decided, for this table alone."""
    table, found = step.table, step.found
    if step.action is Action.NO_DATA:
        return NOTHING
    lock_for_apply(session.write, table)
    if found.compiled is None:
        return recompute(session, table, found)
    if step.action is not Action.DIFFERENTIAL:
        is_large = is_large_load(engine, session, found)
        return fill(engine, session, table, found.compiled.initial(), is_large=is_large)
    program = step.program
    if program is None:
        return NOTHING
    return follow(engine, session, table, program, is_large=is_large_window(engine, step.pending))


def finished(
    session: Session, step: Step, effect: Effect, initiated_by: str
) -> tuple[RefreshOutcome, Refreshed]:
    """What came of a step, for whoever asked and for the catalog."""
    inserted, deleted = effect.applied.inserted, effect.applied.deleted
    milliseconds = (time.perf_counter() - step.clock) * 1000
    outcome = RefreshOutcome(step.table.name, step.action, inserted, deleted, milliseconds, step.reason)
    record = Refreshed(
        action=step.action,
        started_at=step.started_at,
        data_timestamp=session.taken_at,
        frontier=session.frontier,
        upstream=session.upstream_frontier() if step.found.upstream else None,
        rows_inserted=inserted,
        rows_deleted=deleted,
        delta_rows=effect.delta_rows,
        reason=step.reason,
        initiated_by=initiated_by,
        milliseconds=milliseconds,
    )
    return outcome, record


def settle(engine: Engine, session: Session, step: Step, record: Refreshed) -> None:
    """After the result is written down: what is kept of the sources stands where the table does."""
    table = step.table

    def moved(source: Source) -> tuple[Frontier | None, Frontier | None]:
        is_upstream = source.kind is SourceKind.STREAM_TABLE
        return start_of(table, source), record.upstream if is_upstream else record.frontier

    engine.kept.advance(table.id, frozenset(window.relation for window in step.pending), moved)
    if step.found.state_is_behind:
        mark_reinit(session.write, table.id, step.found.state_is_behind)
