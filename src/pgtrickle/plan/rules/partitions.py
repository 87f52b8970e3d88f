"""What Window, Top and Single share: a row depends on all rows of its partition."""

from __future__ import annotations

from pgtrickle.plan.operators import Operator, Single, Top, Window
from pgtrickle.plan.rules.needs import Binder, Needs, needs_below, unique_needs
from pgtrickle.plan.rules.provenance import FindPlaces, places_in_child
from pgtrickle.plan.rules.rule import GroupColumns


def bind_whole_partitions(
    op: Window | Top | Single, keys: tuple[str, ...], needs: Needs, binder: Binder, find_places: FindPlaces
) -> Operator:
    """Whole partitions: also a row that is needed for another column needs all of its partition."""
    below = needs_below(needs, places_in_child(op, find_places))
    direct = tuple(need for need in below if set(need.columns) <= set(keys))
    others = tuple(need for need in below if need not in direct)
    reached = binder.keys(op.child, others, [(name, name) for name in keys], is_null_safe=True)
    return op.with_children((binder.bind(op.child, unique_needs((*direct, *reached))),))


def groups_by(keys: tuple[str, ...]) -> GroupColumns:
    """The groups of an operator whose keys are columns of its child."""
    return GroupColumns(frozenset(keys), tuple((name, name) for name in keys), is_row=False)
