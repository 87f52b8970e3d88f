"""What Aggregate and Distinct share: whole groups are read for every key that a change touches."""

from __future__ import annotations

from pgtrickle.plan.operators import Aggregate, Column, Distinct, Operator
from pgtrickle.plan.rules.needs import Binder, Needs, needs_below
from pgtrickle.plan.rules.provenance import FindPlaces, places_in_child


def bind_whole_groups(
    op: Aggregate | Distinct, needs: Needs, binder: Binder, find_places: FindPlaces
) -> Operator:
    """Whole groups, of the keys that the change touches and of those that are needed."""
    needed = (*needs, *binder.touched_groups(op))
    return op.with_children((binder.bind(op.child, needs_below(needed, places_in_child(op, find_places))),))


def incomparable(columns: tuple[Column, ...]) -> str | None:
    """Why Spark cannot tell which values are equal; None if it can."""
    for column in columns:
        if not column.carrier.equality:
            return f"comparing values of type {column.type.text}"
    return None
