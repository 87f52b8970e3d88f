"""Stream tables that move together, wave by wave: a wave is what reads only tables that are done.

All tables of a wave are refreshed as one: their windows are counted in one query, the window of a
source that several follow is read once, and Spark computes their changes side by side. Each is
undone alone if it fails, and what reads it waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pgtrickle.apply.applying import opened_for_few
from pgtrickle.catalog.outcomes import commit_refreshes
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.memory import TooMuch
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, Status, StreamTable
from pgtrickle.plan.program import Program
from pgtrickle.postgres.prepared_statements import prepared_statements
from pgtrickle.refresh.blaming import check_ground
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.computing import BLAMED, Blamed, computed
from pgtrickle.refresh.differential import NOTHING, Effect, applied_with_others
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.results import Result, failure_of, left_out
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.step import Done, Step, carried_out, decided, finished, planned, settle
from pgtrickle.refresh.unfollowable import Unfollowable
from pgtrickle.refresh.windows import all_pending_windows

Member = tuple[StreamTable, Compilation]
_Change = tuple[Step, Program, pa.Table]
_Took = tuple[Effect, float]
"""What an application did, and how many milliseconds it took."""


def waves(members: Sequence[Member]) -> Iterator[list[Member]]:
    """The members, given in dependency order, in waves: each comes once all that it reads have come."""
    level: dict[RelationName, int] = {}
    for table, found in members:
        below = [level[source.name] for source in found.upstream if source.name in level]
        level[table.name] = 1 + max(below, default=-1)
    for number in range(max(level.values(), default=-1) + 1):
        yield [member for member in members if level[member[0].name] == number]


@dataclass(slots=True)
class Together:
    """Several stream tables in one session; the caller commits.

    `waiting` are tables that do not move, each with what is the matter with it.
    """

    engine: Engine
    session: Session
    initiated_by: str
    waiting: dict[RelationName, str]
    _results: dict[RelationName, Result] = field(default_factory=dict)
    _finished: list[Done] = field(default_factory=list)
    _share: float = 0.0

    def followed(self, members: Sequence[Member]) -> list[Result]:
        """Refresh all, and write down what came of it; the results are in the order of the members."""
        wanted = all(self.engine.prepares(table) for table, _ in members)
        with prepared_statements(self.session.connections, wanted=wanted):
            return self._followed(members)

    def _followed(self, members: Sequence[Member]) -> list[Result]:
        for wave in waves(members):
            moving = [member for member in wave if self._can_move(*member)]
            if moving:
                self._follow(moving)
        self.session.leave()
        if self._finished:
            records = [(done.step.table.id, done.record) for done in self._finished]
            commit_refreshes(self.session.write, records)
        for done in self._finished:
            settle(self.engine, self.session, done)
        return [self._results[table.name] for table, _ in members]

    def _can_move(self, table: StreamTable, found: Compilation) -> bool:
        missing = sorted(source.name for source in found.upstream if source.name in self.waiting)
        if table.status is Status.SUSPENDED:
            self._stay(table, left_out(table.name, "it is suspended"), "is suspended")
        elif missing:
            why = f"waits for {missing[0]}, which {self.waiting[missing[0]]}"
            self._stay(table, left_out(table.name, why), "waits itself")
        return table.name not in self.waiting

    def _follow(self, members: Sequence[Member]) -> None:
        clock = time.perf_counter()
        self.session.leave()
        all_pending = all_pending_windows(self.session, members)
        steps = [
            planned(self.engine, self.session, table, found, pending)
            for (table, found), pending in zip(members, all_pending, strict=True)
        ]
        following = [(step, program) for step in steps if (program := step.program) is not None]
        large = [step for step, program in following if self._reaches_much(step, program)]
        followed = [(step, program) for step, program in following if step not in large]
        with self.engine.memory.holding() as holding:
            results = computed(self.engine, self.session, followed, holding)
            # what was done for all of them at once counts for each by its share
            self._share = _since(clock) / len(members)
            self._apply(followed, results)
            large += [step for (step, _), r in zip(followed, results, strict=True) if isinstance(r, TooMuch)]
            # what they hold is not needed any more
            del results
        for step in large:
            self._by_itself(step, self._carried_out)
        for step in steps:
            if step.action is Action.NO_DATA:
                self._done(step, (NOTHING, 0.0))
            elif step.program is None:
                self._by_itself(step, self._carried_out)

    def _reaches_much(self, step: Step, program: Program) -> bool:
        return self.engine.reaches.is_expected(step.table.id, program)

    def _apply(
        self, followed: Sequence[tuple[Step, Program]], results: Sequence[pa.Table | Blamed | TooMuch | None]
    ) -> None:
        changes: list[_Change] = []
        for (step, program), result in zip(followed, results, strict=True):
            if result is None:
                self._done(step, (NOTHING, 0.0))
            elif isinstance(result, BLAMED):
                self._blamed(step, result)
            elif not isinstance(result, TooMuch):
                changes.append((step, program, result))
        try:
            with self.session.savepoint():
                effects = self._all_applied(changes)
        except BLAMED:
            # one of them is to blame: it alone is undone
            for change in changes:
                self._by_itself(change[0], partial(self._one_applied, change))
        else:
            for (step, _, _), effect in zip(changes, effects, strict=True):
                self._done(step, effect)

    def _one_applied(self, change: _Change, _: Step) -> _Took:
        (effect,) = self._all_applied([change])
        return effect

    def _all_applied(self, changes: Sequence[_Change]) -> list[_Took]:
        if not changes:
            return []
        effects = []
        lock_for_apply(self.session.write, *(step.table for step, _, _ in changes))
        with opened_for_few(self.session.write):
            for step, program, rows in changes:
                clock = time.perf_counter()
                self.session.enter(step.table.settings)
                effect = applied_with_others(self.session, step.table, program, rows)
                effects.append((effect, _since(clock)))
        return effects

    def _carried_out(self, step: Step) -> _Took:
        clock = time.perf_counter()
        self.session.enter(step.table.settings)
        return carried_out(self.engine, self.session, step), _since(clock)

    def _by_itself(self, step: Step, action: Callable[[Step], _Took]) -> None:
        """Do it for one table; a failure undoes only this one."""
        try:
            with self.session.savepoint():
                effect = action(step)
        except BLAMED as blamed:
            self._blamed(step, blamed)
        else:
            self._done(step, effect)

    def _blamed(self, step: Step, blamed: Blamed) -> None:
        if isinstance(blamed, Unfollowable):
            found = step.found.only_full(str(blamed))
            action, reason = decided(step.table, found, step.pending)
            full = replace(step, found=found, action=action, reason=reason)
            self._by_itself(full, self._carried_out)
        else:
            check_ground(self.engine, self.session, step.table, blamed)
            self._stay(step.table, failure_of(step.table, blamed), "failed")

    def _done(self, step: Step, took: _Took) -> None:
        effect, milliseconds = took
        done = finished(self.session, step, effect, self.initiated_by, self._share + milliseconds)
        self._results[step.table.name] = done.outcome
        self._finished.append(done)

    def _stay(self, table: StreamTable, result: Result, why: str) -> None:
        self._results[table.name] = result
        self.waiting[table.name] = why


def _since(clock: float) -> float:
    return (time.perf_counter() - clock) * 1000
