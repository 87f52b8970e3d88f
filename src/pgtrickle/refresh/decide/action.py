"""Differential or full: what a refresh does about the windows of a stream table, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pgtrickle.changes.source_window import SourceWindow
from pgtrickle.model.stream_table import Action, RefreshMode, StreamTable
from pgtrickle.plan.program import Program
from pgtrickle.refresh.compilation import Compilation, CompiledTable
from pgtrickle.refresh.decide.cost_model import (
    FOLLOW,
    Choice,
    CostLimits,
    Estimate,
    Experience,
    RefreshSample,
    Strategy,
    choice,
    is_settled,
)
from pgtrickle.refresh.decide.costs import kind_of_change
from pgtrickle.refresh.decide.estimates import estimate
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
    stop_ms: float | None = None
    """After how many milliseconds it is stopped, and the other strategy used instead; None never."""
    other_ms: float | None = None
    """What that is expected to take."""
    computes_state: bool = True
    """Whether a full refresh also computes the state, so that the next change can be followed."""

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
        match self.action:
            case Action.DIFFERENTIAL:
                return Strategy.DELTA
            case Action.FULL:
                return Strategy.WITH_STATE if self.computes_state else Strategy.RECOMPUTE
            case _:
                return Strategy.LOAD

    @property
    def leaves_state_behind(self) -> bool | None:
        """Whether the state is older than the rows afterwards; None if that stays as it was."""
        if self.strategy is None:
            return None
        if self.compilation.compiled is None:
            return True
        return self.strategy is Strategy.RECOMPUTE and self.compilation.compiled.has_state

    @property
    def changed(self) -> str:
        """Which sources have changed, as the cost model tells windows apart."""
        return kind_of_change(window.relation for window in self.windows)

    def sample(self, milliseconds: float, at: datetime) -> RefreshSample:
        """What the cost model learns if the step took this long."""
        assert self.strategy is not None
        is_new_start = not self.table.is_populated or self.table.reinit_reason is not None
        return RefreshSample(
            self.strategy, self.change_rows, milliseconds, at.timestamp(), is_new_start, self.changed
        )


def plan_step(
    engine: Engine,
    session: Session,
    member: CompiledTable,
    windows: list[SourceWindow],
    outpaced: Choice | None = None,
) -> Step:
    """Decide about the windows of a table: follow them, or compute all rows if that should be faster.

    If one of the two was `outpaced`, it is the other.
    """
    started = datetime.now(UTC)
    action, reason = required_action(member, windows)
    step = Step(member.table, member.compilation, windows, action, reason, started)
    if action is not Action.DIFFERENTIAL:
        return step
    if member.table.mode is RefreshMode.AUTO:
        chosen = outpaced or _cheaper(engine, session, step)
        known = engine.costs.of(session.write, member.table.id)
        step = _with_opinion(step, chosen, keeps_state=_keeps_state(session, member.table, known))
    return _with_state_first(step)


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


def _cheaper(engine: Engine, session: Session, step: Step) -> Choice:
    """What the cost model expects to be cheaper. Only AUTO leaves a choice."""
    program = step.program
    if program is None:
        return FOLLOW
    costs, table, rows, changed = engine.costs, step.table.id, step.change_rows, step.changed
    now, limits = session.taken_at.timestamp(), costs.limits
    known = costs.of(session.write, table)
    estimated: Estimate | None = None
    if not is_settled(known, changed, rows, limits):
        is_kept, estimated = costs.estimate(table, changed, rows, now)
        if not is_kept:
            costs.keep_estimate(table, changed, rows, now, _estimate(session, step, program, limits))
            _, estimated = costs.estimate(table, changed, rows, now)
    return choice(known, changed, rows, estimated, now, limits, is_cold=costs.is_cold(table, changed))


def _keeps_state(session: Session, table: StreamTable, known: Experience) -> bool:
    """Whether a full refresh that AUTO has chosen computes the state too.

    It does after a differential refresh, since the next window may be followed again. Where several in a row
    are full, nobody needs the state. A snapshot that tasks can share is not the one of the connection that
    writes, so there the rows come through the driver, and the state with them.
    """
    return session.can_share or not (table.state_is_behind or known.was_full)


def _with_state_first(step: Step) -> Step:
    """The step; if it would follow a change with a state that is behind, a full refresh that computes it."""
    if not step.table.state_is_behind or step.action is not Action.DIFFERENTIAL:
        return step
    reason = f"{step.reason}; full this time, to compute the state for the next differential refresh"
    return replace(step, action=Action.FULL, reason=reason, stop_ms=None, computes_state=True)


def _estimate(session: Session, step: Step, program: Program, limits: CostLimits) -> Estimate | None:
    compiled = step.compilation.compiled
    assert compiled is not None
    kept = [one.programs for one in compiled.auxiliaries]
    changed = frozenset(window.relation for window in step.windows)
    moved = [one.programs.program(changed & one.reads) for one in compiled.auxiliaries]
    session.enter(step.table.settings)
    found = estimate(
        session.read,
        step.table,
        [program, *(one for one in moved if one is not None)],
        [one.recomputation() for one in (compiled, *kept)],
        step.compilation.sources,
        step.windows,
        limits,
    )
    session.leave()
    return found


def _with_opinion(step: Step, chosen: Choice, *, keeps_state: bool) -> Step:
    return replace(
        step,
        action=Action.FULL if chosen.is_full else step.action,
        reason=f"{step.reason}; {chosen.reason}" if chosen.reason else step.reason,
        stop_ms=chosen.stop_ms,
        other_ms=chosen.other_ms,
        computes_state=keeps_state,
    )


def note_stopped(engine: Engine, step: Step, milliseconds: float, at: datetime) -> Choice:
    """Remember that a refresh was stopped, and would have taken longer; gives what is done instead."""
    engine.costs.add(step.table.id, step.sample(milliseconds, at))
    was_full = step.action is Action.FULL
    what, other = ("full", "differential") if was_full else ("differential", "full")
    return Choice(
        not was_full,
        f"{what} stopped after {milliseconds:,.0f} ms,"
        f" since a {other} refresh takes about {step.other_ms or 0.0:,.0f} ms",
    )


def note_cost(engine: Engine, step: Step, milliseconds: float, at: datetime) -> None:
    """Remember how many milliseconds a refresh took."""
    if step.strategy is not None:
        engine.costs.add(step.table.id, step.sample(milliseconds, at))
