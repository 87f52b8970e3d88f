"""What linear operators share: the change of the child is enough, and needs pass down by column."""

from __future__ import annotations

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.rules.needs import Binder, Needs, needs_below
from pgtrickle.plan.rules.provenance import FindPlaces, places_in_child


def bind_child(op: Operator, needs: Needs, binder: Binder, find_places: FindPlaces) -> Operator:
    """The operator over its only child, of which it needs what is needed of itself."""
    (child,) = op.children
    below = needs_below(needs, places_in_child(op, find_places))
    return op.with_children((binder.bind(child, below),))
