"""Delta of an aggregate.

K = keys of ΔX;  Δ(γ X) = γ(X@new ⋉ K) − γ(X@old ⋉ K)

Without keys every change concerns the one group, and K is "there is a change".
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.operators import Aggregate, Negate, Operator, Project, SemiJoin, UnionAll


def aggregate_delta(op: Aggregate, child: Versions) -> Operator:
    assert child.delta is not None
    grouped = tuple(key.expression for key in op.keys)
    names = tuple(key.column for key in op.keys)
    keys = Project(child.delta, names, grouped)
    now = replace(op, child=_restricted(op, child.new, keys))
    before = replace(op, child=_restricted(op, child.old, keys))
    return UnionAll((now, Negate(before)))


def _restricted(op: Aggregate, rows: Operator, keys: Project) -> Operator:
    return SemiJoin(rows, keys, tuple(key.expression for key in op.keys))
