"""Rows that two relations share, or that only the first has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pgtrickle.plan.operators.operator import Column, Operator


class SetKind(Enum):
    """What is kept of the left side."""

    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class SetOperation(Operator):
    """INTERSECT or EXCEPT, matched by position and named like the left; nulls are equal.

    With `is_all` copies are counted, otherwise each row of the result is there once.
    """

    left: Operator
    right: Operator
    kind: SetKind
    is_all: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns
