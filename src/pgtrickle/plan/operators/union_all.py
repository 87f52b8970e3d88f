"""The rows of several relations together."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class UnionAll(Operator):
    """All rows of all `arms`, matched by position and named like the first; duplicates add up."""

    arms: tuple[Operator, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.arms[0].columns
