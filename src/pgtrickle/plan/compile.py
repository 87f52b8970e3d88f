"""A query, compiled: its operators, the way it ends, and the program for each window."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from functools import cached_property

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.aggregates import EXACT
from pgtrickle.plan.analysis.context import Context, Definition, Typer
from pgtrickle.plan.analysis.query import Block, analysed, parse
from pgtrickle.plan.expressions import column
from pgtrickle.plan.expressions.clock import has_clock
from pgtrickle.plan.expressions.dialect import written
from pgtrickle.plan.following import Following
from pgtrickle.plan.limits import MAX_DEPTH, exceeded
from pgtrickle.plan.lowering.exactness import require_exact
from pgtrickle.plan.operators import Aggregate, Distinct, Filter, GroupKey, Operator, Scan, Top
from pgtrickle.plan.passes.check_clock import check_clock
from pgtrickle.plan.passes.require_end import require_end
from pgtrickle.plan.program import Cut, Program
from pgtrickle.plan.targets.groups import Grouped
from pgtrickle.plan.targets.merged import Merged
from pgtrickle.plan.targets.ordered import Ordered
from pgtrickle.plan.targets.replaced import Replaced
from pgtrickle.plan.targets.rows import Rows
from pgtrickle.plan.targets.shape import Shape
from pgtrickle.plan.targets.widths import require_room

MAX_PROGRAMS = 64
"""So many programs of one query are kept; the one not asked for for longest goes first."""


class Compiled(Following):
    """A query with its operators: it can make the program of any window."""

    def __init__(self, shape: Shape, root: Operator) -> None:
        self.shape = shape
        self.root = root
        self._made: OrderedDict[frozenset[RelationId], Program | None] = OrderedDict()
        self._lock = threading.Lock()

    def program(self, changed: frozenset[RelationId]) -> Program | None:
        with self._lock:
            if changed in self._made:
                self._made.move_to_end(changed)
                return self._made[changed]
        program = self.shape.program(changed)
        with self._lock:
            self._made[changed] = program
            if len(self._made) > MAX_PROGRAMS:
                self._made.popitem(last=False)
        return program

    @property
    def made(self) -> tuple[frozenset[RelationId], ...]:
        """The windows for which there are programs, the latest asked for last."""
        with self._lock:
            return tuple(self._made)

    def initial(self) -> Program:
        return self._initial

    @cached_property
    def _initial(self) -> Program:
        return self.shape.initial()

    @cached_property
    def clocked(self) -> frozenset[RelationId]:
        scans = (op for op in self.shape.operator.walk() if isinstance(op, Scan))
        return frozenset(scan.source.relation for scan in scans if has_clock(scan.condition))

    @cached_property
    def sources(self) -> frozenset[RelationId]:
        return frozenset(op.source.relation for op in self.root.walk() if isinstance(op, Scan))

    @property
    def asks_on_apply(self) -> bool:
        return self.shape.asks_on_apply


def regenerated(query: str) -> str:
    """The query as our parser understood it; PostgreSQL must find it the same as the original."""
    try:
        return written(parse(query))
    except RecursionError:
        raise exceeded("MAX_DEPTH", MAX_DEPTH) from None


def compiled(definition: Definition, typer: Typer) -> Compiled:
    """Compile a query, or refuse it with the reason why deltas cannot follow it."""
    try:
        return _compiled(definition, typer)
    except RecursionError:
        # rewriting can make a tree deeper than it was
        raise exceeded("MAX_DEPTH", MAX_DEPTH) from None


def _compiled(definition: Definition, typer: Typer) -> Compiled:
    context = Context(definition, typer)
    block = analysed(parse(definition.query), context)
    check_clock(block.operator, [expression for _, expression in block.outputs])
    require_end(block.operator)
    shape = _shape(block, definition, context)
    changed = frozenset(source.relation for source in definition.sources.values())
    found = Compiled(shape, block.operator)
    # what cannot be written is found out now, and not by a refresh
    program = found.program(changed)
    if program is not None:
        require_room(program.target)
    return found


def _shape(block: Block, definition: Definition, context: Context) -> Shape:
    top = block.operator
    # rows that the query spells out have an order, and never change
    is_constant = not any(isinstance(part, Scan) for part in top.walk())
    if isinstance(top, Top) and not top.partition and not is_constant:
        grouped = _grouped(replace(block, operator=top.child), definition)
        if grouped is None or not _is_mergeable(grouped.aggregate) or not grouped.aggregate.keys:
            return Ordered(block, definition.outputs, context)
        return Merged(_cut(grouped, top))
    grouped = _grouped(block, definition)
    if grouped is None:
        return Rows(block, definition.outputs, context)
    if _is_mergeable(grouped.aggregate):
        return Merged(grouped)
    return Replaced(grouped)


def _cut(grouped: Grouped, top: Top) -> Grouped:
    """The groups with the order in which the first of them are shown."""
    names = tuple(dict.fromkeys(ordering.column for ordering in top.order))
    order = tuple((names.index(o.column), o.is_descending, o.has_nulls_first) for o in top.order)
    hidden = tuple((name, top.column(name).type, column(name)) for name in names)
    return replace(grouped, cut=Cut(order, top.limit, top.offset, top.has_ties), hidden=hidden)


def _grouped(block: Block, definition: Definition) -> Grouped | None:
    """The groups at the top of the query, if it ends in groups."""
    operator: Operator = block.operator
    having = None
    if isinstance(operator, Filter) and isinstance(operator.child, Aggregate):
        having, operator = operator.condition, operator.child
    if isinstance(operator, Distinct):
        keys = tuple(GroupKey(c, column(c.name)) for c in operator.columns)
        operator = Aggregate(operator.child, keys, ())
    if not isinstance(operator, Aggregate):
        return None
    outputs = tuple(
        (name, pg_type, expression)
        for (name, pg_type), (_, expression) in zip(definition.outputs, block.outputs, strict=True)
    )
    return Grouped(operator, having, outputs)


def _is_mergeable(aggregate: Aggregate) -> bool:
    is_known = all(call.function and EXACT[call.function].final for call in aggregate.calls)
    return is_known and all(_is_groupable(key, aggregate.child) for key in aggregate.keys)


def _is_groupable(key: GroupKey, child: Operator) -> bool:
    """Whether Spark groups by the key as PostgreSQL does."""
    try:
        require_exact(key.expression, child.columns)
    except UnsupportedQuery:
        return False
    return key.column.carrier.equality
