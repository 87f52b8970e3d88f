"""The rows of a relation taken away."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Negate(Operator):
    """The rows of `child` with the opposite weight."""

    child: Operator

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)
