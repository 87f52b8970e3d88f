"""Follows columns of a tree back to the reads they come from."""

from __future__ import annotations

from pgtrickle.plan.operators import Aggregate, Input, Join, Operator, Project, SemiJoin, UnionAll
from pgtrickle.plan.program import KeyColumns, ReadKind


def traced(op: Operator, columns: tuple[str, ...]) -> tuple[KeyColumns, ...]:
    """The small reads that hold every value these columns can have; none if there are no such."""
    found = _traced(op, columns)
    return tuple(dict.fromkeys(found)) if found else ()


def _traced(op: Operator, columns: tuple[str, ...]) -> list[KeyColumns] | None:
    if isinstance(op, Input):
        is_small = op.read.kind is ReadKind.CHANGES or bool(op.read.lookups)
        return [KeyColumns(op.read.name, columns)] if is_small else None
    if isinstance(op, Join):
        for side in op.children:
            if set(columns) <= side.names:
                return _traced(side, columns)
        return None
    if isinstance(op, SemiJoin):
        return _traced(op.child, columns)
    if isinstance(op, UnionAll):
        return _arms(op, columns)
    if isinstance(op, (Project, Aggregate)):
        below = _below(op, columns)
        return _traced(op.child, below) if below is not None else None
    (child,) = op.children
    return _traced(child, columns)


def _arms(op: UnionAll, columns: tuple[str, ...]) -> list[KeyColumns] | None:
    found: list[KeyColumns] = []
    for arm in op.arms:
        own = {ours.name: theirs.name for ours, theirs in zip(op.columns, arm.columns, strict=True)}
        part = _traced(arm, tuple(own[name] for name in columns))
        if part is None:
            return None
        found.extend(part)
    return found


def _below(op: Project | Aggregate, columns: tuple[str, ...]) -> tuple[str, ...] | None:
    if isinstance(op, Project):
        outputs = {c.name: e.column for c, e in zip(op.columns, op.expressions, strict=True)}
    else:
        outputs = {key.column.name: key.expression.column for key in op.keys}
    below = [outputs.get(name) for name in columns]
    if any(name is None for name in below):
        return None
    return tuple(name for name in below if name is not None)
