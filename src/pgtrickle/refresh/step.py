"""One stream table in a session: see what changed, decide, carry it out, and write it down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from pgtrickle.catalog.dependencies import GroundState, ground_state
from pgtrickle.catalog.outcomes import Refreshed, commit_refresh, mark_reinit
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.window import SourceWindow
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.plan.program import Program
from pgtrickle.postgres.prepared_statements import prepared_statements
from pgtrickle.refresh.announcing import announce_completed
from pgtrickle.refresh.blaming import Altered
from pgtrickle.refresh.choosing import chosen, note, strategy_of
from pgtrickle.refresh.comparing import is_behind
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.differential import NOTHING, Effect, fill, follow
from pgtrickle.refresh.diverging import end_repairs
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.recomputing import recompute
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.sizes import is_large_load, is_large_window
from pgtrickle.refresh.windows import pending_windows, start_of


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done for a stream table, and why."""

    table: StreamTable
    found: Compilation
    pending: list[SourceWindow]
    action: Action
    reason: str
    started_at: datetime

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
    with prepared_statements(session.connections, wanted=engine.prepares(table)):
        clock = time.perf_counter()
        ground = require_unaltered(session, [(table, found)])
        step = planned(engine, session, table, found, pending_windows(session, table, found))
        session.enter(table.settings)
        effect = carried_out(engine, session, step)
        session.leave()
        done = finished(session, step, effect, initiated_by, (time.perf_counter() - clock) * 1000)
        require_same_code(session, [table], ground)
        commit_refresh(session.write, table.id, done.record)
        settle(engine, session, done)
        return done.outcome


@dataclass(frozen=True, slots=True)
class Done:
    """A step, what came of it for whoever asked, and what is written down of it."""

    step: Step
    outcome: RefreshOutcome
    record: Refreshed


def planned(
    engine: Engine, session: Session, table: StreamTable, found: Compilation, pending: list[SourceWindow]
) -> Step:
    """What is to be done about a window: followed, or computed anew where that is expected to be faster."""
    started = datetime.now(UTC)
    action, reason = decided(table, found, pending)
    if action is Action.DIFFERENTIAL:
        action, opinion = chosen(engine, session, table, found, pending)
        reason += opinion
    return Step(table, found, pending, action, reason, started)


def require_unaltered(session: Session, tables: list[tuple[StreamTable, Compilation]]) -> GroundState:
    """Raise if a query may no longer fit what it relies on as the session sees it."""
    copied = {source for _, found in tables for source in found.copied}
    ground = ground_state(session.read, [table.id for table, _ in tables])
    if ground.is_moved or is_behind(session.read, copied):
        raise Altered
    return ground


def require_same_code(session: Session, tables: list[StreamTable], ground: GroundState) -> None:
    """Raise if code, types or edges of inheritance, which take effect at once, changed after the snapshot."""
    if ground_state(session.newest, [table.id for table in tables]).code != ground.code:
        raise Altered


def decided(table: StreamTable, found: Compilation, pending: list[SourceWindow]) -> tuple[Action, str]:
    """Which action this window gets, and why."""
    if not table.is_populated:
        return Action.REINITIALIZE, table.reinit_reason or "first load"
    if table.reinit_reason:
        return Action.REINITIALIZE, table.reinit_reason
    if not pending and not found.follows_clock:
        return Action.NO_DATA, "no source has changed"
    if found.compiled is None:
        return Action.FULL, found.reason
    names = {source.relation: source.name for source in found.sources}
    for window in pending:
        if window.is_truncated:
            return (
                Action.FULL,
                f"{names[window.relation]} was truncated, or changed in a way that could not be captured",
            )
    rows = sum(window.rows for window in pending)
    moved = ", and the clock moved" if found.compiled.clocked else ""
    return Action.DIFFERENTIAL, f"{rows:,} change rows{moved}"


def carried_out(engine: Engine, session: Session, step: Step) -> Effect:
    """Do what was decided, for this table alone."""
    table, found = step.table, step.found
    if step.action is Action.NO_DATA:
        return NOTHING
    lock_for_apply(session.write, table)
    if step.action is Action.REINITIALIZE and table.is_populated:
        limit = engine.limits.current
        end_repairs(session, table, found, limit.left if limit is not None else None)
    if found.compiled is None:
        engine.limits.doing("evaluating the query in PostgreSQL")
        return recompute(session, table, found)
    if step.action is not Action.DIFFERENTIAL:
        is_large = is_large_load(engine, session, found)
        return fill(engine, session, table, found.compiled.initial(), is_large=is_large)
    program = step.program
    if program is None:
        return NOTHING
    return follow(engine, session, table, program, is_large=is_large_window(engine, step.pending))


def finished(session: Session, step: Step, effect: Effect, initiated_by: str, milliseconds: float) -> Done:
    """What came of a step that took so long."""
    inserted, deleted = effect.applied.inserted, effect.applied.deleted
    strategy = strategy_of(step.found, step.action)
    reason = step.reason + effect.note
    record = Refreshed(
        action=step.action,
        started_at=step.started_at,
        data_timestamp=session.taken_at,
        frontier=session.frontier,
        upstream=session.upstream_frontier() if step.found.upstream else None,
        rows_inserted=inserted,
        rows_deleted=deleted,
        delta_rows=effect.delta_rows,
        reason=reason,
        initiated_by=initiated_by,
        milliseconds=milliseconds,
        change_rows=sum(window.rows for window in step.pending),
        strategy=strategy.value if strategy else None,
    )
    outcome = RefreshOutcome(step.table.name, step.action, inserted, deleted, milliseconds, reason)
    return Done(step, outcome, record)


def settle(engine: Engine, session: Session, done: Done) -> None:
    """After the result is written down: tell it, and let what is remembered stand where the table does."""
    table, found, record = done.step.table, done.step.found, done.record

    def moved(source: Source) -> tuple[Frontier | None, Frontier | None]:
        is_upstream = source.kind is SourceKind.STREAM_TABLE
        return start_of(table, source), record.upstream if is_upstream else record.frontier

    if record.action is Action.REINITIALIZE:
        # a change may have been missed, which is why it was loaded anew
        engine.kept.forget(table.id)
    else:
        engine.kept.advance(table.id, frozenset(window.relation for window in done.step.pending), moved)
    strategy = strategy_of(found, record.action)
    if strategy is not None:
        note(engine, table, strategy, record.change_rows or 0, record.milliseconds, session.taken_at)
    if found.state_is_behind:
        mark_reinit(session.write, table.id, found.state_is_behind)
    announce_completed(
        session.write,
        table,
        done.outcome,
        is_asked=record.initiated_by == "manual",
        is_behind=found.state_is_behind is not None,
    )
