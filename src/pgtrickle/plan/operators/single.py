"""Rows that may come once only."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator

MORE_THAN_ONE_ROW = "a subquery that is used as a value has more than one row"


@dataclass(frozen=True, slots=True)
class Single(Operator):
    """The rows of `child`, of which each combination of `keys` has one at most; more are an error.

    It is what a scalar subquery gives; without keys it has one row at most in all.
    """

    child: Operator
    keys: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns
