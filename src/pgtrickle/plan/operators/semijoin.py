"""Rows whose key is among the keys of another relation."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class SemiJoin(Operator):
    """Rows of `child` for which `on` equals the columns of some row of `keys`; nulls are equal.

    It is the restriction X ⋉ K of the keyed delta rules. Without expressions: all rows if there is a key.
    """

    child: Operator
    keys: Operator
    on: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child, self.keys)
