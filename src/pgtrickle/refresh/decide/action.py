"""Differential or full: what a refresh does about the windows of a stream table, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pgtrickle.changes.source_window import SourceWindow
from pgtrickle.model.stream_table import Action, RefreshMode, StreamTable
from pgtrickle.plan.program import Program
from pgtrickle.refresh.compilation import Compilation, CompiledTable
from pgtrickle.refresh.decide.cost_model import RefreshSample, Strategy, choice, may_try_full
from pgtrickle.refresh.decide.sizes import estimated_rows
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session


@dataclass(frozen=True, slots=True)
class Step:
    """What a refresh does for one stream table, and why."""

    table: StreamTable
    compilation: Compilation
    windows: list[SourceWindow]
    action: Action
    reason: str
    started_at: datetime

    @property
    def program(self) -> Program | None:
        """The program of a differential step; None if the change has no effect on the table."""
        if self.compilation.compiled is None or self.action is not Action.DIFFERENTIAL:
            return None
        changed = frozenset(window.relation for window in self.windows)
        return self.compilation.compiled.program(changed | self.compilation.compiled.clocked)

    @property
    def change_rows(self) -> int:
        """How many change rows the windows have."""
        return sum(window.rows for window in self.windows)

    @property
    def strategy(self) -> Strategy | None:
        """How the rows are computed; None if nothing is."""
        if self.action in (Action.NO_DATA, Action.SKIP):
            return None
        if self.compilation.compiled is None:
            return Strategy.RECOMPUTE
        return Strategy.DELTA if self.action is Action.DIFFERENTIAL else Strategy.LOAD


def plan_step(engine: Engine, session: Session, member: CompiledTable, windows: list[SourceWindow]) -> Step:
    """Decide about the windows of a table: follow them, or load all rows if that should be faster."""
    started = datetime.now(UTC)
    action, reason = required_action(member, windows)
    step = Step(member.table, member.compilation, windows, action, reason, started)
    return _cheaper_step(engine, session, step) if action is Action.DIFFERENTIAL else step


def required_action(member: CompiledTable, windows: list[SourceWindow]) -> tuple[Action, str]:
    """The action that the windows allow, before costs are compared, and the reason for it."""
    table, compilation = member.table, member.compilation
    if not table.is_populated:
        return Action.REINITIALIZE, table.reinit_reason or "first load"
    if table.reinit_reason:
        return Action.REINITIALIZE, table.reinit_reason
    if not windows and not compilation.follows_clock:
        return Action.NO_DATA, "no source has changed"
    if compilation.compiled is None:
        return Action.FULL, compilation.reason
    names = {source.relation: source.name for source in compilation.sources}
    for window in windows:
        if window.is_truncated:
            return (
                Action.FULL,
                f"{names[window.relation]} was truncated, or changed in a way that could not be captured",
            )
    rows = sum(window.rows for window in windows)
    moved = ", and the clock moved" if compilation.compiled.clocked else ""
    return Action.DIFFERENTIAL, f"{rows:,} change {'row' if rows == 1 else 'rows'}{moved}"


def _cheaper_step(engine: Engine, session: Session, step: Step) -> Step:
    """The step, or a load of all rows if that is cheaper; the reason says what the cost model expects.

    Only AUTO leaves a choice. A load uses the table's own program, so that its state stays right.
    """
    table, rows, limits = step.table, step.change_rows, engine.costs.limits
    is_settling = session.taken_at - table.created_at < timedelta(seconds=limits.settles_seconds)
    if table.mode is not RefreshMode.AUTO or is_settling:
        return step
    known = engine.costs.of(session.write, table.id)
    preferred = choice(known, rows, session.taken_at.timestamp(), limits)
    if preferred.is_full:
        return _with_opinion(step, Action.FULL, preferred.reason)
    if may_try_full(known, rows, limits):
        total = estimated_rows(session.read, [source.table.sql for source in step.compilation.sources])
        if rows >= total:
            return _with_opinion(
                step, Action.FULL, f"full tried, since the sources have about {total:,} rows"
            )
    return _with_opinion(step, Action.DIFFERENTIAL, preferred.reason)


def _with_opinion(step: Step, action: Action, opinion: str) -> Step:
    reason = f"{step.reason}; {opinion}" if opinion else step.reason
    return Step(step.table, step.compilation, step.windows, action, reason, step.started_at)


def note_cost(engine: Engine, step: Step, milliseconds: float, at: datetime) -> None:
    """Remember how many milliseconds a refresh took."""
    if step.strategy is None:
        return
    is_new_start = not step.table.is_populated or step.table.reinit_reason is not None
    sample = RefreshSample(step.strategy, step.change_rows, milliseconds, at.timestamp(), is_new_start)
    engine.costs.add(step.table.id, sample)
