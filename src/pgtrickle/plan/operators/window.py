"""Rows with values computed from the rows around them."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One window function: the whole call with its OVER clause, as PostgreSQL writes it."""

    column: Column
    expression: Expression


@dataclass(frozen=True, slots=True)
class Window(Operator):
    """Each row of `child` with the values of `calls`, which all look only at rows equal in `partition`.

    Windows with different partitions are one operator each, or one with what the partitions share.
    """

    child: Operator
    partition: tuple[str, ...]
    calls: tuple[WindowCall, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + tuple(call.column for call in self.calls)
