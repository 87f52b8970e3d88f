"""Delta of an inner join.

Δ(L ⋈ R) = ΔL ⋈ R@new  +  L@old ⋈ ΔR

One side new and the other old counts each changed pair once.
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.operators import Join, Operator, UnionAll


def join_delta(op: Join, left: Versions, right: Versions) -> Operator:
    terms: list[Operator] = []
    if left.delta is not None:
        terms.append(replace(op, left=left.delta, right=right.new))
    if right.delta is not None:
        terms.append(replace(op, left=left.old, right=right.delta))
    return terms[0] if len(terms) == 1 else UnionAll(tuple(terms))
