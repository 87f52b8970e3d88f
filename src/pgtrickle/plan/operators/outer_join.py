"""Pairs of rows that belong together, and the rows without a partner."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class OuterJoin(Operator):
    """The pairs of an inner join, and each row of `left` without a match, its other columns null.

    With `keeps_right` (FULL JOIN) also each row of `right` without a match.
    """

    left: Operator
    right: Operator
    on: tuple[tuple[str, str], ...]
    condition: Expression | None
    keeps_right: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns
