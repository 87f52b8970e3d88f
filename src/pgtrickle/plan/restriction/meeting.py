"""Groups that are completed only if they are met: who joins them is asked for their keys first.

A change touches many groups, and a filtered table that they are joined with may know few of them.
So that table is looked up by the keys of the changed groups, and only the groups whose keys it has
are read as a whole. The others stay incomplete, which does not matter: they meet nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgtrickle.plan.operators import Aggregate, Distinct, Evaluated, Filter, Operator, Project
from pgtrickle.plan.restriction.passing import places
from pgtrickle.plan.restriction.wants import Needs, renamed

if TYPE_CHECKING:
    from pgtrickle.plan.restriction.binding import Binding


def met_by(binding: Binding, op: Operator, pairs: list[tuple[str, str]]) -> Needs:
    """What the changed groups of a tree ask of the rows that meet them: (their column, ours) each.

    Nothing if the tree does not end in groups, or if the pairs do not hold all of their key.
    """
    below = {ours: theirs for theirs, ours in pairs}
    groups = op
    while isinstance(groups, (Evaluated, Filter, Project)):
        if isinstance(groups, Project):
            down = places(groups)
            below = {down[ours]: theirs for ours, theirs in below.items() if ours in down}
        groups = groups.child
    if not isinstance(groups, (Aggregate, Distinct)) or not binding.is_changed(groups):
        return ()
    keys = binding.own_keys(groups)
    names = {key.column.name for key in groups.keys} if isinstance(groups, Aggregate) else groups.names
    if not names <= below.keys() or not all(set(want.columns) == names for want in keys):
        return ()
    binding.complete_if_met(groups)
    return renamed(keys, below)
