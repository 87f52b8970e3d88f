"""What PostgreSQL evaluates itself, over the rows that a change can reach."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Evaluated(Operator):
    """The rows of `child`, which Spark could not give exactly: `because` says why."""

    child: Operator
    because: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns
