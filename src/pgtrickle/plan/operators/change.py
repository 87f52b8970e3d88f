"""The change of a source within the window, as weighted rows."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.scan import Scan


@dataclass(frozen=True, slots=True)
class Change(Operator):
    """Rows that came to `scan` (weight above zero) and went from it (below zero)."""

    scan: Scan

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns
