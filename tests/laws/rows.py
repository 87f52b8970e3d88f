"""Rows of operators: their values by name, and which of two sides belong together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from pgtrickle.model.source import Source
from pgtrickle.plan.operators import Join, Mark, Operator, OuterJoin, Threshold
from tests.laws.expressions import is_true

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Row = tuple[Any, ...]
Rows = Iterable[tuple[Row, int]]
"""Rows of a bag, each once, with how often they are there."""


def naming(op: Operator) -> Callable[[Row], dict[str, Any]]:
    """What gives a row of the operator by its column names."""
    names = [c.name for c in op.columns]
    return lambda row: dict(zip(names, row, strict=True))


def padding(op: Operator) -> Row:
    """The nulls that stand for a row of the operator."""
    return (None,) * len(op.columns)


def positions(op: Operator, names: Iterable[str]) -> list[int]:
    """Where columns stand in a row."""
    known = [c.name for c in op.columns]
    return [known.index(name) for name in names]


def matcher(op: Join | OuterJoin | Mark) -> Callable[[Row, Row], bool]:
    """Whether a row of the left and one of the right belong together."""
    ours = positions(op.left, [a for a, _ in op.on])
    theirs = positions(op.right, [b for _, b in op.on])
    pairs = list(zip(ours, theirs, strict=True))
    names = [c.name for c in (*op.left.columns, *op.right.columns)]

    def matches(left: Row, right: Row) -> bool:
        if not all(left[a] is not None and left[a] == right[b] for a, b in pairs):
            return False
        return op.condition is None or is_true(op.condition, dict(zip(names, left + right, strict=True)))

    return matches


def crossing(op: Threshold) -> Callable[[Row, Row], bool]:
    """Whether a row of the left is on the kept side of the bound in a row of the right."""
    (ours,), (theirs,) = positions(op.left, [op.compared]), positions(op.right, [op.bound])
    compare = SIGNS[op.comparison]

    def is_kept(left: Row, right: Row) -> bool:
        return left[ours] is not None and right[theirs] is not None and compare(left[ours], right[theirs])

    return is_kept


def respects(source: Source, rows: list[Row]) -> bool:
    """Whether no two rows share a key of the source, and no key has a null."""
    names = [column.name for column in source.columns]
    for key in source.keys:
        held = [tuple(row[names.index(name)] for name in key) for row in rows]
        if len(set(held)) < len(held) or any(None in values for values in held):
            return False
    return True
