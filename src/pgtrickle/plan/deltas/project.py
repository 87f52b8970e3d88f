"""Delta of a projection.

Δ(π X) = π ΔX
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.operators import Operator, Project


def project_delta(op: Project, child: Versions) -> Operator:
    assert child.delta is not None
    return replace(op, child=child.delta)
