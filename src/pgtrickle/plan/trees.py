"""The same operator over other children."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pgtrickle.plan.operators import Join, Mark, Operator, OuterJoin, Recursive, SetOperation, UnionAll


def with_children(op: Operator, children: tuple[Operator, ...]) -> Operator:
    """The operator with these children in the place of its own."""
    if not op.children:
        return op
    if isinstance(op, UnionAll):
        return replace(op, arms=children)
    if isinstance(op, (Join, OuterJoin, Mark, SetOperation)):
        left, right = children
        return replace(op, left=left, right=right)
    if isinstance(op, Recursive):
        base, step = children
        return replace(op, base=base, step=step)
    single: Any = op
    (child,) = children
    changed: Operator = replace(single, child=child)
    return changed
