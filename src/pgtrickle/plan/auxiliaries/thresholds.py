"""Finds comparisons with a kept value, of which nothing else is read.

Where `x > (select avg(x) …)` compares with one row that is kept, the row is no longer joined with all others:
the comparison becomes a threshold, right above what gives `x`.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Final

from pgtrickle.model.source import PgType, SourceKind
from pgtrickle.plan import properties
from pgtrickle.plan.auxiliaries.choice import Region, region_at
from pgtrickle.plan.expressions import Expression, all_of, conjuncts
from pgtrickle.plan.operators import Aggregate, Filter, Join, Operator, Project, Scan, Threshold
from pgtrickle.plan.passes.bind.region import is_region
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.rule import Names
from pgtrickle.plan.rules.threshold import NODES

_NUMBERS: Final = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
_TIMES: Final = frozenset(
    {"date", "timestamp without time zone", "timestamp with time zone", "time without time zone"}
)
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def with_thresholds(op: Operator, needed: Names) -> Operator:
    """The tree with its thresholds, given which of its columns are read above it."""
    if is_region(op):
        op = _region_with_thresholds(op, needed)
    reading = _Reading()
    RULES[type(op)].prune(op, needed, reading)
    return op.with_children(
        tuple(with_thresholds(child, reading.names_of(child) | _written(op)) for child in op.children)
    )


def _written(op: Operator) -> Names:
    """The columns that the operator names at all: PostgreSQL may evaluate it as the query has it."""
    arguments = [c.argument for c in op.calls if c.argument] if isinstance(op, Aggregate) else []
    written = (*RULES[type(op)].expressions(op), *arguments)
    return frozenset(name for expression in written for name in expression.columns)


class _Reading:
    """Notes what an operator reads of its children, where it would leave out the rest."""

    def __init__(self) -> None:
        self._names: dict[int, Names] = {}

    def names_of(self, op: Operator) -> Names:
        """What is read of a child; all of it, if nothing was noted."""
        return self._names.get(id(op), op.names)

    def prune(self, op: Operator, names: Names) -> Operator:
        self._names[id(op)] = self._names.get(id(op), frozenset()) | names
        return op

    def prune_to(self, op: Operator, names: list[str]) -> Operator:
        return self.prune(op, frozenset(names))

    def prune_as_written(self, op: Operator, names: Names) -> Operator:
        return self.prune(op, names)

    def is_unique(self, op: Operator, names: Set[str]) -> bool:
        return properties.is_unique(op, names)


def _region_with_thresholds(op: Operator, needed: Names) -> Operator:
    region = region_at(op)
    for bound in region.leaves:
        found = _only_comparison(region, bound, needed)
        if found is not None:
            condition, leaf, threshold = found
            return _region_with_thresholds(_without(op, condition, bound, leaf, threshold), needed)
    return op


def _only_comparison(
    region: Region, bound: Operator, needed: Names
) -> tuple[Expression, Operator, Threshold] | None:
    """The one condition that reads a kept value, the leaf it compares with it, and the threshold."""
    if not _is_kept_value(bound) or bound.names & needed:
        return None
    reading = [condition for condition in region.conditions if condition.columns & bound.names]
    if len(reading) != 1 or any(set(pair) & bound.names for pair in region.pairs):
        return None
    for leaf in region.leaves:
        threshold = _threshold(reading[0], leaf, bound) if leaf is not bound else None
        if threshold is not None:
            return reading[0], leaf, threshold
    return None


def _is_kept_value(op: Operator) -> bool:
    """Whether it is the only row of a kept result; a condition could leave it without a row."""
    scan = op.child if isinstance(op, Project) else op
    if not isinstance(scan, Scan) or scan.source.kind is not SourceKind.AUXILIARY:
        return False
    return scan.source.keys == ((),) and scan.condition is None


def _threshold(condition: Expression, leaf: Operator, bound: Operator) -> Threshold | None:
    node = condition.node.unnest()
    comparison = next((sign for sign, kind in NODES.items() if type(node) is kind), None)
    if comparison is None:
        return None
    first, second = Expression(node.this).column, Expression(node.expression).column
    if first in bound.names:
        first, second, comparison = second, first, _MIRRORED[comparison]
    if first is None or second is None or first not in leaf.names or second not in bound.names:
        return None
    if not _is_ordered_alike(leaf.column(first).type, bound.column(second).type):
        return None
    return Threshold(leaf, bound, first, comparison, second)


def _is_ordered_alike(left: PgType, right: PgType) -> bool:
    """Whether the values have one order, which does not depend on a collation."""
    return {left.base, right.base} <= _NUMBERS or (left.base == right.base and left.base in _TIMES)


def _without(
    op: Operator, condition: Expression, bound: Operator, leaf: Operator, threshold: Threshold
) -> Operator:
    """The region with the threshold in the place of its leaf, and without the condition and the bound."""

    def visit(part: Operator) -> Operator | None:
        if part is bound:
            return None
        if part is leaf:
            return threshold
        if not is_region(part):
            return part
        children = [child for child in map(visit, part.children) if child is not None]
        if isinstance(part, Filter):
            kept = all_of(tuple(c for c in conjuncts(part.condition) if c != condition))
            return Filter(children[0], kept) if kept is not None else children[0]
        assert isinstance(part, Join)
        own = conjuncts(part.condition) if part.condition is not None else ()
        kept = all_of(tuple(c for c in own if c != condition))
        if len(children) == 2:
            return replace(part, left=children[0], right=children[1], condition=kept)
        return children[0] if kept is None else Filter(children[0], kept)

    found = visit(op)
    assert found is not None
    return found
