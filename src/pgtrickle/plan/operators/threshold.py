"""Rows on one side of a value that moves."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator

COMPARISONS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Threshold(Operator):
    """Rows of `left` whose `compared` column is below or above the `bound` of the only row of `right`.

    `comparison` is one of COMPARISONS, with the column of the left first.
    """

    left: Operator
    right: Operator
    compared: str
    comparison: str
    bound: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns
