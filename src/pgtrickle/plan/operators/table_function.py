"""Rows that a function makes of each row."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class TableFunction(Operator):
    """Each row of `child` beside each row that the set-returning `call` gives for it.

    `made` are the columns of the function's rows, by position; with `has_ordinality` the last of
    them counts the rows. Of the function's rows those count for which `condition` is true. With
    `keeps_child` a row for which there are none stays, with nulls.
    """

    child: Operator
    call: Expression
    made: tuple[Column, ...]
    has_ordinality: bool = False
    keeps_child: bool = False
    condition: Expression | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + self.made
