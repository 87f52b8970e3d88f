"""Delta of a scan.

Δ(T) = the change rows of the window;  T@old = T@new − ΔT

The scan's condition and expressions run on the change rows too, so the rule is linear.
"""

from __future__ import annotations

from pgtrickle.plan.deltas.versions import Versions
from pgtrickle.plan.operators import Change, Past, Scan


def scan_versions(op: Scan, *, is_changed: bool) -> Versions:
    if not is_changed:
        return Versions(op, op, None)
    return Versions(Past(op), op, Change(op))
