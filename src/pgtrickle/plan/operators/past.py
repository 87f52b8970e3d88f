"""A source as it was at the start of the window."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator
from pgtrickle.plan.operators.scan import Scan


@dataclass(frozen=True, slots=True)
class Past(Operator):
    """Rows of `scan` before the window: what it has now, less its change."""

    scan: Scan

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns
