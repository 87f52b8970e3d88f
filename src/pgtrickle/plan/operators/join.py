"""Pairs of rows that belong together."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """Pairs of a `left` and a `right` row whose key columns are equal and `condition` is true.

    `on` pairs a column of the left with one of the right. No pairs and no condition: all pairs.
    """

    left: Operator
    right: Operator
    on: tuple[tuple[str, str], ...]
    condition: Expression | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns
