"""A compilation without its operators: the programs made so far, as values that can be stored."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pgtrickle.model.source import PgType, Source
from pgtrickle.model.stream_table import RefreshMode, RelationId
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.program import Program
from pgtrickle.plan.programs import Auxiliary, QueryPrograms
from pgtrickle.refresh.compilation import Compilation

MAX_SAVED = 32
"""The most programs of one query that are stored, the last used ones first."""


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """The program for windows in which these sources changed, in the order of their ids."""

    changed: tuple[RelationId, ...]
    program: Program | None


@dataclass(frozen=True, slots=True)
class SavedAuxiliary:
    """An inner result that is kept; its plan keeps none itself."""

    source: Source
    reads: tuple[RelationId, ...]
    indexes: tuple[tuple[str, ...], ...]
    plan: SavedPlan


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A query that can be followed; one of its programs is for changes of all sources."""

    sources: tuple[RelationId, ...]
    clocked: tuple[RelationId, ...]
    asks_on_apply: bool
    initial: Program
    recomputation: Program
    programs: tuple[SavedProgram, ...]
    auxiliaries: tuple[SavedAuxiliary, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedCompilation:
    """A compilation, for other processes that refresh the same stream table."""

    query: str
    answer: str
    mode: RefreshMode
    outputs: tuple[tuple[str, PgType], ...]
    sources: tuple[Source, ...]
    plan: SavedPlan | None
    reason: str
    follows_clock: bool


class SavedFollowing(QueryPrograms):
    """A query that was compiled before, perhaps by another process.

    A window without a program gets that of a larger window, which reads more than necessary and gives the
    same result. Such windows are noted, so that the next compilation makes their programs.
    """

    def __init__(self, plan: SavedPlan) -> None:
        self._plan = plan
        self.auxiliaries = tuple(
            Auxiliary(one.source, frozenset(one.reads), SavedFollowing(one.plan), one.indexes)
            for one in plan.auxiliaries
        )
        self._programs = {frozenset(one.changed): one.program for one in plan.programs}
        self._missed: set[frozenset[RelationId]] = set()
        self._lock = threading.Lock()

    @property
    def sources(self) -> frozenset[RelationId]:
        return frozenset(self._plan.sources)

    @property
    def clocked(self) -> frozenset[RelationId]:
        return frozenset(self._plan.clocked)

    @property
    def asks_on_apply(self) -> bool:
        return self._plan.asks_on_apply

    @property
    def missed(self) -> frozenset[frozenset[RelationId]]:
        """The windows that used the program of a larger one."""
        with self._lock:
            return frozenset(self._missed)

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        if changed in self._programs:
            return self._programs[changed]
        with self._lock:
            self._missed.add(changed)
        larger = [known for known in self._programs if known >= changed]
        return self._programs[min(larger, key=lambda known: (len(known), sorted(known)))]

    def initial(self) -> Program:
        return self._plan.initial

    def recomputation(self) -> Program:
        return self._plan.recomputation


def saved_compilation(found: Compilation) -> SavedCompilation:
    """The compilation as values; makes the programs of the commonest windows if they are missing."""
    assert found.compiled is None or isinstance(found.compiled, Compiled)
    return SavedCompilation(
        query=found.query,
        answer=found.answer,
        mode=found.mode,
        outputs=found.outputs,
        sources=found.sources,
        plan=_plan(found.compiled, found.sources) if found.compiled else None,
        reason=found.reason,
        follows_clock=found.follows_clock,
    )


def restored_compilation(saved: SavedCompilation) -> Compilation:
    """The compilation as a refresh uses it."""
    return Compilation(
        query=saved.query,
        answer=saved.answer,
        mode=saved.mode,
        outputs=saved.outputs,
        sources=saved.sources,
        compiled=SavedFollowing(saved.plan) if saved.plan else None,
        reason=saved.reason,
        follows_clock=saved.follows_clock,
    )


def _auxiliary(one: Auxiliary) -> SavedAuxiliary:
    assert isinstance(one.programs, Compiled)
    return SavedAuxiliary(one.source, tuple(sorted(one.reads)), one.indexes, _plan(one.programs, ()))


def _plan(compiled: Compiled, sources: tuple[Source, ...]) -> SavedPlan:
    every = frozenset(source.relation for source in sources) | compiled.sources
    asked = compiled.made
    single = [frozenset({relation}) | compiled.clocked for relation in sorted(every)]
    wanted = list(dict.fromkeys([every, *single, *reversed(asked)]))[: max(MAX_SAVED, 1 + len(single))]
    return SavedPlan(
        sources=tuple(sorted(compiled.sources)),
        clocked=tuple(sorted(compiled.clocked)),
        asks_on_apply=compiled.asks_on_apply,
        initial=compiled.initial(),
        recomputation=compiled.recomputation(),
        programs=tuple(SavedProgram(tuple(sorted(one)), compiled.program(one)) for one in wanted),
        auxiliaries=tuple(map(_auxiliary, compiled.auxiliaries)),
    )
