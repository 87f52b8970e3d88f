"""Rows that were read from PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.program import Read


@dataclass(frozen=True, slots=True)
class Input(Operator):
    """The rows of a `read`, under the plan names of `columns_`; fields have the same names."""

    read: Read
    columns_: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_
