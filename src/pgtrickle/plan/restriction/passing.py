"""How needs pass from an operator's columns to its child's, and from rows to the rows they meet."""

from __future__ import annotations

from collections.abc import Mapping

from pgtrickle.plan.operators import Aggregate, Operator, OuterJoin, Project, UnionAll
from pgtrickle.plan.restriction.tracing import traced
from pgtrickle.plan.restriction.wants import EVERYTHING, Needs, Want


def places(op: Operator) -> Mapping[str, str]:
    """Which column of its only child each column of an operator is; computed ones are none."""
    if isinstance(op, Project):
        pairs = zip(op.columns, op.expressions, strict=True)
        return {c.name: e.column for c, e in pairs if e.column is not None}
    if isinstance(op, Aggregate):
        return {k.column.name: k.expression.column for k in op.keys if k.expression.column is not None}
    return {name: name for name in op.children[0].names}


def wants_from(provider: Operator, pairs: list[tuple[str, str]], *, is_null_safe: bool) -> Needs:
    """What the rows of a bound tree ask of the columns they are paired with: (target, own) each."""
    for chosen in (pairs, *([pair] for pair in pairs), []):
        found = traced(provider, tuple(own for _, own in chosen))
        if found is not None:
            targets = tuple(target for target, _ in chosen)
            return (Want(targets, found, is_null_safe and bool(targets)),) if found else ()
    # no read tells what a recursion will reach, or that there is no row of an aggregate without keys
    return (EVERYTHING,)


def padded(op: Operator, column: str) -> bool:
    """Whether a column can be null because a row has no partner, so that its reads do not hold the null."""
    if isinstance(op, OuterJoin):
        if column in op.right.names:
            return True
        return op.keeps_right or padded(op.left, column)
    if isinstance(op, UnionAll):
        position = [c.name for c in op.columns].index(column)
        return any(padded(arm, arm.columns[position].name) for arm in op.arms)
    if isinstance(op, (Project, Aggregate)):
        below = places(op).get(column)
        return below is not None and padded(op.child, below)
    return any(padded(child, column) for child in op.children if column in child.names)
