"""Removes columns that are not read, down to the scans."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from pgtrickle.plan import properties
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Aggregate, Operator, Project
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.rule import Names


def prune(op: Operator, needed: Iterable[str]) -> Operator:
    """The operator with only the needed columns, and those that it reads itself, kept below."""
    return _Pruning().prune(op, frozenset(needed))


def prune_as_written(op: Operator, needed: Iterable[str]) -> Operator:
    """The same for PostgreSQL, which evaluates every call as the query has it."""
    return _Pruning().prune_as_written(op, frozenset(needed))


class _Pruning:
    """What rules may ask of this pass."""

    def prune(self, op: Operator, names: Names) -> Operator:
        return RULES[type(op)].prune(op, names, self)

    def prune_to(self, op: Operator, names: list[str]) -> Operator:
        below = self.prune(op, frozenset(names))
        if [c.name for c in below.columns] == names:
            return below
        kept = tuple(below.column(name) for name in names)
        return Project(below, kept, tuple(column(c.name) for c in kept))

    def prune_as_written(self, op: Operator, names: Names) -> Operator:
        return self.prune(_as_written(op), names)

    def is_unique(self, op: Operator, names: Set[str]) -> bool:
        return properties.is_unique(op, names)


def _as_written(op: Operator) -> Operator:
    """The tree whose aggregates PostgreSQL evaluates: nothing is computed for Spark."""
    below = op.with_children(tuple(_as_written(child) for child in op.children))
    if isinstance(below, Aggregate):
        return replace(below, calls=tuple(replace(c, function=None, argument=None) for c in below.calls))
    return below
