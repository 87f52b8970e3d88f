"""Delta of a union.

Δ(X + Y) = ΔX + ΔY
"""

from __future__ import annotations

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Operator, Project, UnionAll


def union_all_delta(op: UnionAll, *arms: Versions) -> Operator:
    changed = [arm.delta for arm in arms if arm.delta is not None]
    # the union's columns are named like its first arm, which may not be among the changed ones
    first = Project(changed[0], op.columns, tuple(column(c.name) for c in changed[0].columns))
    return UnionAll((first, *changed[1:]))
