"""Rows with a column that tells whether another relation has a match."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Mark(Operator):
    """Each row of `left` with the boolean `column`: true if some row of `right` matches it, else false.

    A row matches if the pairs of `on` are equal (null equals nothing) and `condition` is true.
    EXISTS, IN, ANY and ALL become marks; a filter above keeps the rows with the wanted ones.
    """

    left: Operator
    right: Operator
    on: tuple[tuple[str, str], ...]
    condition: Expression | None
    column_: Column

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.left.columns, self.column_)
