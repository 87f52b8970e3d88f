"""Each row once."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Distinct(Operator):
    """Each row that `child` has at least once; nulls are equal."""

    child: Operator

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns
