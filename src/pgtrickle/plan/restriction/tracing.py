"""Follows columns of a bound tree back to the reads that hold their values."""

from __future__ import annotations

from pgtrickle.plan.operators import (
    Aggregate,
    Answer,
    Join,
    Leaf,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    TableFunction,
    UnionAll,
    Window,
)
from pgtrickle.plan.reads import KeyColumns

Traced = tuple[KeyColumns, ...] | None
"""The reads with every value that columns can have; none where there are no rows; None if unknown."""


def traced(op: Operator, columns: tuple[str, ...]) -> Traced:
    """The reads that together hold every combination of values that these columns can have."""
    if isinstance(op, Nothing):
        return ()
    if isinstance(op, Leaf):
        reads = (op.change, *op.rows) if op.change else op.rows
        return tuple(KeyColumns(read.name, columns) for read in reads)
    if isinstance(op, Answer):
        return tuple(KeyColumns(read.name, columns) for read, _ in op.reads)
    if isinstance(op, Join):
        return _joined(op, columns)
    if isinstance(op, OuterJoin):
        return _outer(op, columns)
    if isinstance(op, Recursive):
        return None
    if isinstance(op, UnionAll):
        return _together([traced(arm, _by_position(op, arm, columns)) for arm in op.arms])
    if isinstance(op, Aggregate) and not op.keys:
        # it has its row also where no read has any
        return None
    below = _below(op, columns)
    return None if below is None else traced(op.children[0], below)


def origin(op: Operator, column: str) -> tuple[Scan, str] | None:
    """The scan, and its column, that a column of a tree is taken from unchanged."""
    if isinstance(op, Scan):
        return (op, column) if column in op.names else None
    if isinstance(op, (Join, OuterJoin)):
        side = op.left if column in op.left.names else op.right
        return origin(side, column)
    if not op.children or isinstance(op, Recursive):
        return None
    first = op.children[0]
    below = _below(op, _by_position(op, first, (column,)) if isinstance(op, UnionAll) else (column,))
    return origin(first, below[0]) if below else None


def _joined(op: Join, columns: tuple[str, ...]) -> Traced:
    if any(isinstance(side, Nothing) for side in op.children):
        return ()
    sides = [traced(side, columns) for side in op.children if set(columns) <= side.names]
    return next((found for found in sides if found is not None), None)


def _outer(op: OuterJoin, columns: tuple[str, ...]) -> Traced:
    if not columns and op.keeps_right:
        return _together([traced(op.left, ()), traced(op.right, ())])
    for side in op.children:
        if set(columns) <= side.names:
            return traced(side, columns)
    return None


def _together(parts: list[Traced]) -> Traced:
    found: list[KeyColumns] = []
    for part in parts:
        if part is None:
            return None
        found.extend(part)
    return tuple(dict.fromkeys(found))


def _by_position(op: Operator, arm: Operator, columns: tuple[str, ...]) -> tuple[str, ...]:
    own = {ours.name: theirs.name for ours, theirs in zip(op.columns, arm.columns, strict=True)}
    return tuple(own[name] for name in columns)


def _below(op: Operator, columns: tuple[str, ...]) -> tuple[str, ...] | None:
    """What columns of an operator are in its first child; None if they are computed."""
    if isinstance(op, Project):
        outputs = {c.name: e.column for c, e in zip(op.columns, op.expressions, strict=True)}
    elif isinstance(op, Aggregate):
        outputs = {key.column.name: key.expression.column for key in op.keys}
    elif isinstance(op, (Mark, Window, TableFunction)):
        outputs = {name: name for name in op.children[0].names}
    else:
        return columns
    below = [outputs.get(name) for name in columns]
    return None if None in below else tuple(name for name in below if name is not None)
