"""What operators share whose children are matched by position, and whose rows count as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.rules.rule import Names, Pruner


def places_by_position(op: Operator, child: Operator) -> Mapping[str, str]:
    """Which column of a child each column of the operator is."""
    return {ours.name: theirs.name for ours, theirs in zip(op.columns, child.columns, strict=True)}


def prune_nothing_off(op: Operator, names: Names, pruner: Pruner) -> Operator:
    """The operator with all its columns: each of them decides which rows are equal."""
    whole = (pruner.prune_to(child, [c.name for c in child.columns]) for child in op.children)
    return op.with_children(tuple(whole))


def different_forms(op: Operator) -> str | None:
    """Why Spark cannot bring the children together: a column has several forms there."""
    for columns in zip(*(child.columns for child in op.children), strict=True):
        if len({(c.carrier.spark, c.carrier.carry) for c in columns}) > 1:
            return f"bringing {' and '.join(sorted({c.type.text for c in columns}))} together"
    return None
