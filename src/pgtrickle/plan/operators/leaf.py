"""What was read of a source: its change, and the unchanged rows that matter."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.scan import Scan
from pgtrickle.plan.program import Read


@dataclass(frozen=True, slots=True)
class Leaf(Operator):
    """A scan whose rows come from reads; `change` is None where the source has not changed."""

    scan: Scan
    change: Read | None
    rows: tuple[Read, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns


@dataclass(frozen=True, slots=True)
class Answer(Operator):
    """Rows that PostgreSQL evaluated: as they are now, and as they were before if that differs."""

    columns_: tuple[Column, ...]
    now: Read
    before: Read | None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_


@dataclass(frozen=True, slots=True)
class Nothing(Operator):
    """No rows."""

    columns_: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_
