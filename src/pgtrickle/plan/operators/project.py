"""Rows with other columns."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """One row for each row of `child`, made of `expressions`; duplicates stay."""

    child: Operator
    columns_: tuple[Column, ...]
    expressions: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_
