"""Refreshes claimed stream tables wave by wave: a wave is what reads only tables that are done.

The windows of a wave are counted in one query. On a session that several tables share, the window of a
source is read once for all of them, Spark computes small changes side by side, a table that fails is undone
alone, and tables that read it wait. A table alone is a wave of one, without savepoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pgtrickle.catalog.outcomes import commit_refreshes, record_attached
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.memory import TooMuch
from pgtrickle.model.names import RelationName
from pgtrickle.model.phases import Phase, PhaseTimes
from pgtrickle.model.source import SourceKind
from pgtrickle.model.stream_table import Action, Status, StreamTable
from pgtrickle.postgres.prepared_statements import prepared_statements
from pgtrickle.refresh.claim import Claim
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.decide.action import Step, note_stopped, plan_step, required_action
from pgtrickle.refresh.decide.cost_model import Choice
from pgtrickle.refresh.decide.windows import pending_windows
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute.apply_result import apply_with_others
from pgtrickle.refresh.execute.compute import ProgramRun
from pgtrickle.refresh.execute.side_by_side import compute_side_by_side
from pgtrickle.refresh.execute.step import execute
from pgtrickle.refresh.faults import (
    BLAMED,
    Blamed,
    Unfollowable,
    check_ground,
    require_same_code,
    require_unaltered,
)
from pgtrickle.refresh.late_changes import provide_decoded
from pgtrickle.refresh.outcome import (
    HELD,
    NOTHING,
    CompletedStep,
    Effect,
    Failure,
    Result,
    announce_completed,
    completed_step,
    failure_of,
    left_out,
    settle,
)
from pgtrickle.refresh.phases import PhaseClock
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.timeouts import Outpaced

_Change = tuple[Step, ProgramRun, pa.Table]
_Timed = tuple[Effect, PhaseTimes]
"""The effect of an application, and how long it took."""
_AT_ONCE = PhaseTimes()


class StartOver(Exception):
    """The refresh of a table was stopped, and has to be started again with the other strategy."""

    def __init__(self, instead: Choice) -> None:
        super().__init__(instead.reason)
        self.instead = instead


def refresh_waves(engine: Engine, claim: Claim, failures: Sequence[Failure] = ()) -> list[Result]:
    """Refresh the claimed tables and record the results; the caller commits.

    Tables that read one of the `failures`, or a table that another session holds, are left out.
    """
    waiting = {failure.table.name: "failed" for failure in failures}
    waiting |= {table.name: "is being refreshed by another session" for table in claim.missing}
    wanted = all(engine.prepares(member.table) for member in claim.members)
    with prepared_statements(claim.session.connections, wanted=wanted):
        results = _Waves(engine, claim, claim.session, waiting).refresh()
    return [*results, *(left_out(table.name, HELD) for table in claim.missing)]


def rehearse_waves(engine: Engine, claim: Claim, failures: Sequence[Failure] = ()) -> list[Result]:
    """Refresh the claimed tables without recording the results; the caller rolls back."""
    waiting = {failure.table.name: "failed" for failure in failures}
    waiting |= {table.name: "is being refreshed by another session" for table in claim.missing}
    return _Waves(engine, claim, claim.session, waiting).rehearse()


def waves(members: Sequence[CompiledTable]) -> Iterator[list[CompiledTable]]:
    """The members, given in dependency order, in waves: each comes after everything it reads."""
    level: dict[RelationName, int] = {}
    for member in members:
        below = [level[source.name] for source in member.compilation.upstream if source.name in level]
        level[member.table.name] = 1 + max(below, default=-1)
    for number in range(max(level.values(), default=-1) + 1):
        yield [member for member in members if level[member.table.name] == number]


def _keeps_auxiliaries(step: Step) -> bool:
    """Whether inner results of the table have to be followed before it."""
    return step.compilation.compiled is not None and bool(step.compilation.compiled.auxiliaries)


@dataclass(slots=True)
class _Waves:
    """The progress of a refresh. `waiting` holds the tables that do not move, each with the reason."""

    engine: Engine
    claim: Claim
    session: Session
    waiting: dict[RelationName, str]
    _results: dict[RelationName, Result] = field(default_factory=dict)
    _completed: list[CompletedStep] = field(default_factory=list)
    _share: PhaseTimes = _AT_ONCE
    """What each table of the wave owes for work that was done for all of them."""

    def refresh(self) -> list[Result]:
        """Refresh all members and record it; the results are in the order of the members."""
        results = self.rehearse()
        self._record()
        return results

    def rehearse(self) -> list[Result]:
        """Refresh all members, but record nothing in the catalog and in the caches of the process."""
        self.session.phases = PhaseClock(self.engine.tracer)
        members = self.claim.members
        moving = [member for member in members if member.table.status is not Status.SUSPENDED]
        ground = require_unaltered(self.session, moving) if moving else None
        provide_decoded(self.engine, self.session, moving)
        for wave in waves(members):
            if ready := [member for member in wave if self._can_move(member)]:
                self._refresh_wave(ready)
                self.session.phases.take()
        self.session.leave()
        if ground is not None:
            require_same_code(self.session, moving, ground)
        return [self._results[member.table.name] for member in members]

    def _can_move(self, member: CompiledTable) -> bool:
        table = member.table
        missing = sorted(s.name for s in member.compilation.upstream if s.name in self.waiting)
        if table.status is Status.SUSPENDED:
            self._stay(table, left_out(table.name, "it is suspended"), "is suspended")
        elif missing:
            why = f"waits for {missing[0]}, which {self.waiting[missing[0]]}"
            self._stay(table, left_out(table.name, why), "waits itself")
        return table.name not in self.waiting

    def _refresh_wave(self, members: Sequence[CompiledTable]) -> None:
        self.session.leave()
        with self.session.phases.measure(Phase.READ):
            windows = pending_windows(self.session, members)
        pairs = zip(members, windows, strict=True)
        request = self.claim.request
        steps = [
            plan_step(self.engine, self.session, member, part, request.outpaced) for member, part in pairs
        ]
        # work for the whole wave is charged to its tables in equal shares
        self._share = self.session.phases.take() / len(members)
        # what is stopped is started again as a whole, so a table that is refreshed with others is not
        may_stop = request.can_start_over and len(self.claim.members) == 1
        stop_ms = steps[0].stop_ms if may_stop else None
        try:
            with self.engine.timeouts.pacing(stop_ms):
                self._carry_out(steps)
        except Outpaced as stopped:
            at = self.session.taken_at
            raise StartOver(note_stopped(self.engine, steps[0], stopped.milliseconds, at)) from stopped

    def _carry_out(self, steps: Sequence[Step]) -> None:
        finished = self._refresh_side_by_side(steps)
        for step in steps:
            if step.action is Action.NO_DATA:
                self._complete(step, (NOTHING, _AT_ONCE))
            elif step.table.name not in finished:
                self._refresh_single(step)

    def _refresh_side_by_side(self, steps: Sequence[Step]) -> set[RelationName]:
        """Follow the small changes of several tables at once; returns the tables that this has dealt with.

        The others reach too many rows, need PostgreSQL, or are alone on a snapshot that tasks can share.
        """
        if self.session.can_share:
            return set()
        with self.engine.memory.holding() as holding:
            runs = [
                (step, ProgramRun(self.engine, self.session, step.table, program, holding))
                for step in steps
                if (program := step.program) is not None
                and not _keeps_auxiliaries(step)
                and not self.engine.reaches.is_expected(step.table.id, program)
            ]
            results = compute_side_by_side([run for _, run in runs], holding)
            self._share += self.session.phases.take() / len(steps)
            changes: list[_Change] = []
            finished: set[RelationName] = set()
            for (step, run), result in zip(runs, results, strict=True):
                if isinstance(result, TooMuch):
                    continue
                finished.add(step.table.name)
                if result is None:
                    self._complete(step, (NOTHING, _AT_ONCE))
                elif isinstance(result, BLAMED):
                    self._blame(step, result)
                else:
                    changes.append((step, run, result))
            self._apply_changes(changes)
            return finished

    def _apply_changes(self, changes: Sequence[_Change]) -> None:
        try:
            with self.session.savepoint():
                effects = self._apply_all(changes)
        except BLAMED:
            # one of them is at fault: apply each in its own savepoint
            for change in changes:
                self._refresh_single(change[0], partial(self._apply_one, change))
        else:
            for (step, _, _), effect in zip(changes, effects, strict=True):
                self._complete(step, effect)

    def _apply_one(self, change: _Change) -> _Timed:
        (timed,) = self._apply_all([change])
        return timed

    def _apply_all(self, changes: Sequence[_Change]) -> list[_Timed]:
        if not changes:
            return []
        lock_for_apply(self.session.write, *(step.table for step, _, _ in changes))
        self.session.phases.take()
        return apply_with_others([(run, rows) for _, run, rows in changes])

    def _refresh_single(self, step: Step, action: Callable[[], _Timed] | None = None) -> None:
        """Refresh one table, by default as its step says; a failure undoes only this one."""
        try:
            with self.session.savepoint():
                timed = action() if action else self._execute(step)
        except BLAMED as blamed:
            if self.session.can_share:
                # there was no savepoint: the caller rolls the transaction back
                raise
            self._blame(step, blamed)
        else:
            self._complete(step, timed)

    def _execute(self, step: Step) -> _Timed:
        phases = self.session.phases
        phases.take()
        self.session.enter(step.table.settings)
        effect = execute(self.engine, self.session, step)
        return effect, phases.take()

    def _blame(self, step: Step, blamed: Blamed) -> None:
        """Deal with the failure of a table: evaluate it in PostgreSQL, or leave it as it was."""
        if isinstance(blamed, Unfollowable):
            member = CompiledTable(step.table, step.compilation).only_full(str(blamed))
            action, reason = required_action(member, step.windows)
            full = replace(step, compilation=member.compilation, action=action, reason=reason)
            self._refresh_single(full)
        else:
            check_ground(self.engine, self.session, step.table, blamed)
            self._stay(step.table, failure_of(step.table, blamed), "failed")

    def _complete(self, step: Step, timed: _Timed) -> None:
        effect, times = timed
        initiated_by = self.claim.request.initiated_by
        completed = completed_step(self.session, step, effect, initiated_by, self._share + times)
        self._results[step.table.name] = completed.outcome
        self._completed.append(completed)

    def _stay(self, table: StreamTable, result: Result, why: str) -> None:
        self._results[table.name] = result
        self.waiting[table.name] = why

    def _record(self) -> None:
        """Write the results to the catalog, then update the caches of the process."""
        if not self._completed:
            return
        records = [(completed.step.table.id, completed.record) for completed in self._completed]
        with self.session.write.pipeline():
            commit_refreshes(self.session.write, records)
            announce_completed(self.session.write, self._completed)
        attached = [
            completed.step.table.id
            for completed in self._completed
            if any(s.kind is SourceKind.ATTACHED_TABLE for s in completed.step.compilation.sources)
        ]
        if attached:
            record_attached(self.session.read, self.session.write, attached)
        for completed in self._completed:
            settle(self.engine, self.session, completed)
