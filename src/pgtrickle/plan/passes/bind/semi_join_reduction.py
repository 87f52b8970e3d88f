"""Semi-join reduction: changed groups are completed only if the rows that join them have their keys.

A change touches many groups, and a filtered table that they are joined with may know few of them.
So that table is looked up by the keys of the changed groups, and only the groups whose keys it has
are read as a whole. The others stay incomplete, which does not matter: they join nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.properties import child_columns
from pgtrickle.plan.rules import RULES


def groups_at_top(op: Operator, pairs: list[tuple[str, str]]) -> tuple[Operator, Mapping[str, str]] | None:
    """The groups that a tree ends in, and which column each of their columns is paired with.

    The pairs are (column of the rows that join them, column of the tree). None if it does not end in groups.
    """
    paired = {ours: theirs for theirs, ours in pairs}
    while (child := RULES[type(op)].group_child(op)) is not None:
        below = child_columns(op)
        paired = {below[ours]: theirs for ours, theirs in paired.items() if ours in below}
        op = child
    groups = RULES[type(op)].groups(op)
    return (op, paired) if groups is not None and groups.is_row else None
