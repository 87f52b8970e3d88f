"""Delta of DISTINCT.

K = ΔX;  Δ(δ X) = δ(X@new ⋉ K) − δ(X@old ⋉ K)

A row is its own key.
"""

from __future__ import annotations

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Distinct, Negate, Operator, SemiJoin, UnionAll


def distinct_delta(op: Distinct, child: Versions) -> Operator:
    assert child.delta is not None
    on = tuple(column(c.name) for c in op.columns)
    now = Distinct(SemiJoin(child.new, child.delta, on))
    before = Distinct(SemiJoin(child.old, child.delta, on))
    return UnionAll((now, Negate(before)))
