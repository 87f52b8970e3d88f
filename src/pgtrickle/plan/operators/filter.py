"""Rows that satisfy a condition."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """Rows of `child` whose `condition` is true; null counts as false."""

    child: Operator
    condition: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns
