"""Compiles a query: the passes in their order, from canonical text to the program for each window."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from pgtrickle.model.lru import LruCache
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import Context, QueryDefinition, Typer
from pgtrickle.plan.analysis.parsing import parse
from pgtrickle.plan.analysis.query import analyse
from pgtrickle.plan.auxiliaries.choice import scans_of
from pgtrickle.plan.auxiliaries.extract import extract_auxiliaries, indexed
from pgtrickle.plan.expressions.clock import has_clock
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.plan.operators import Operator, Scan
from pgtrickle.plan.passes.check_clock import check_clock
from pgtrickle.plan.passes.require_end import require_end
from pgtrickle.plan.program import Program
from pgtrickle.plan.programs import Auxiliary, QueryPrograms, with_changed_auxiliaries
from pgtrickle.plan.targets.choose import choose_shape
from pgtrickle.plan.targets.shape import Shape
from pgtrickle.plan.targets.widths import require_room

MAX_PROGRAMS: Final = 64
"""How many programs of one query are kept; the least recently used goes first."""


def compile_query(definition: QueryDefinition, typer: Typer, limits: QueryLimits = USUAL_LIMITS) -> Compiled:
    """Compile a query, or refuse it with the reason why deltas cannot follow it."""
    try:
        return _compile(definition, Context(definition, typer, limits))
    except RecursionError:
        # rewriting can make a tree deeper than it was
        raise limits.limit_error("max_depth") from None


def _compile(definition: QueryDefinition, context: Context) -> Compiled:
    tree = parse(definition.query, context.limits)
    block = analyse(tree, context)
    check_clock(block.operator, [expression for _, expression in block.outputs])
    require_end(block.operator)
    block, kept = extract_auxiliaries(block, context)
    # a shape places and prunes its tree; for each window it binds the tree and writes it as SQL
    shape = choose_shape(block, definition, context)
    auxiliaries = tuple(
        Auxiliary(
            one.source,
            frozenset(scan.source.relation for scan in scans_of(one.aggregate)),
            Compiled(one.shape, one.aggregate),
        )
        for one in kept
    )
    compiled = Compiled(shape, block.operator, indexed(auxiliaries, shape, kept))
    # what cannot be written is found out now, and not by a refresh
    program = compiled.program(frozenset(source.relation for source in definition.sources.values()))
    if program is not None:
        require_room(program.target)
    return compiled


def regenerate(query: str, limits: QueryLimits = USUAL_LIMITS) -> str:
    """The query as our parser understood it; PostgreSQL must find it the same as the original."""
    try:
        return to_sql(parse(query, limits))
    except RecursionError:
        raise limits.limit_error("max_depth") from None


class Compiled(QueryPrograms):
    """A query with its operators: it can make the program of any window."""

    def __init__(self, shape: Shape, root: Operator, auxiliaries: tuple[Auxiliary, ...] = ()) -> None:
        self.shape = shape
        self.root = root
        self.auxiliaries = auxiliaries
        self._programs: LruCache[frozenset[RelationId], tuple[Program | None]] = LruCache(MAX_PROGRAMS)

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        known = self._programs.get(changed)
        if known is None:
            known = (self.shape.program(with_changed_auxiliaries(changed, self.auxiliaries)),)
            self._programs.put(changed, known)
        return known[0]

    @property
    def made(self) -> tuple[frozenset[RelationId], ...]:
        """The windows for which there are programs, the latest used last."""
        return self._programs.keys()

    def initial(self) -> Program:
        return self._initial

    @cached_property
    def _initial(self) -> Program:
        return self.shape.initial()

    def recomputation(self) -> Program:
        return self._recomputation

    @cached_property
    def _recomputation(self) -> Program:
        return self.shape.recomputation()

    @cached_property
    def clocked(self) -> frozenset[RelationId]:
        scans = (op for op in self.shape.operator.walk() if isinstance(op, Scan))
        return frozenset(scan.source.relation for scan in scans if has_clock(scan.condition))

    @cached_property
    def sources(self) -> frozenset[RelationId]:
        own = frozenset(op.source.relation for op in self.root.walk() if isinstance(op, Scan))
        read = own.union(*(auxiliary.reads for auxiliary in self.auxiliaries))
        return read - {auxiliary.source.relation for auxiliary in self.auxiliaries}

    @property
    def asks_on_apply(self) -> bool:
        return self.shape.asks_on_apply
