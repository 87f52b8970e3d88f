"""Delta of a filter.

Δ(σ X) = σ ΔX
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.operators import Filter, Operator


def filter_delta(op: Filter, child: Versions) -> Operator:
    assert child.delta is not None
    return replace(op, child=child.delta)
