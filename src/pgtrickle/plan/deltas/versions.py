"""A subtree X at both ends of the window and its change: X@new = X@old + ΔX."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators import Operator


@dataclass(frozen=True, slots=True)
class Versions:
    """`delta` is None where nothing below has changed; then `old` and `new` are the same."""

    old: Operator
    new: Operator
    delta: Operator | None
