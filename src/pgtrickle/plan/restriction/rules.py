"""What each operator needs of its children, so that its own change and what is needed of it are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    SetOperation,
    Single,
    TableFunction,
    Top,
    UnionAll,
    Window,
)
from pgtrickle.plan.restriction.meeting import met_by
from pgtrickle.plan.restriction.passing import places
from pgtrickle.plan.restriction.wants import EVERYTHING, Needs, each, renamed

if TYPE_CHECKING:
    from pgtrickle.plan.restriction.binding import Binding


def _linear(binding: Binding, op: Operator, needs: Needs) -> tuple[Operator, ...]:
    (child,) = op.children
    return (binding.bound(child, renamed(needs, places(op))),)


def _union_all(binding: Binding, op: UnionAll, needs: Needs) -> tuple[Operator, ...]:
    return tuple(binding.bound(arm, renamed(needs, _positions(op, arm))) for arm in op.arms)


def _grouped(binding: Binding, op: Aggregate | Distinct, needs: Needs) -> tuple[Operator, ...]:
    """Whole groups, of the keys that the change touches and of those that are needed."""
    below = renamed((*needs, *binding.touched(op)), places(op))
    return (binding.bound(op.child, below),)


def _partitioned(binding: Binding, op: Window | Top | Single, needs: Needs) -> tuple[Operator, ...]:
    """Whole partitions: also a row that is needed for another column needs all of its partition."""
    keys = op.keys if isinstance(op, Single) else op.partition
    below = renamed(needs, places(op))
    direct = tuple(want for want in below if set(want.columns) <= set(keys))
    others = tuple(want for want in below if want not in direct)
    reached = binding.keys(op.child, others, [(name, name) for name in keys], is_null_safe=True)
    return (binding.bound(op.child, each((*direct, *reached))),)


def _set_operation(binding: Binding, op: SetOperation, needs: Needs) -> tuple[Operator, ...]:
    """Whole rows are the keys, and both sides are counted for them."""
    asked = list(needs)
    for side in op.children:
        pairs = [(ours.name, theirs.name) for ours, theirs in zip(op.columns, side.columns, strict=True)]
        asked += binding.changed_keys(side, pairs, is_null_safe=True)
    return tuple(binding.bound(side, renamed(each(asked), _positions(op, side))) for side in op.children)


def _paired(binding: Binding, op: Mark | OuterJoin, needs: Needs) -> tuple[Operator, ...]:
    """Rows of the left that changed, are needed, or match what did on the right; all their matches."""
    left_needs, right_needs, gates = _sides(op, needs)
    to_right = [(right, left) for left, right in op.on]
    met = () if right_needs or _keeps_right(op) else met_by(binding, op.right, list(op.on))
    from_right = met or binding.keys(op.right, right_needs, list(op.on), is_null_safe=False)
    left_asked = [*left_needs, *gates, *from_right]
    right_asked = [*right_needs, *gates]
    if _keeps_right(op):
        from_left = binding.keys(op.left, left_needs, to_right, is_null_safe=False)
        left_asked += renamed(from_left, dict(to_right))
        right_asked += [*from_left, *renamed(from_right, dict(op.on))]
    elif met or left_needs or gates or binding.is_changed(op.left):
        right_asked += binding.keys(op.left, each(left_asked), to_right, is_null_safe=False)
    else:
        right_asked += renamed(from_right, dict(op.on))
    return binding.bound(op.left, each(left_asked)), binding.bound(op.right, each(right_asked))


def _keeps_right(op: Mark | OuterJoin) -> bool:
    return isinstance(op, OuterJoin) and op.keeps_right


def _whole(binding: Binding, op: Recursive, needs: Needs) -> tuple[Operator, ...]:
    """All rows at both ends: no key tells which of them the recursion reaches."""
    return tuple(binding.bound(child, (EVERYTHING,)) for child in op.children)


def _sides(op: Mark | OuterJoin, needs: Needs) -> tuple[Needs, Needs, Needs]:
    """The needs that enter on the left, those on the right, and those for everything.

    A null in a column of a side that may be padded stands for rows of the other side.
    """
    is_full = _keeps_right(op)
    left, right, gates = [], [], []
    for want in needs:
        ours, theirs = want.within(op.left.names), want.within(op.right.names)
        if ours.columns and not (is_full and want.is_null_safe):
            left.append(ours)
        elif theirs.columns and not want.is_null_safe:
            right.append(theirs)
        else:
            gates.append(want.gate)
    return tuple(left), tuple(right), tuple(gates)


def _positions(op: Operator, arm: Operator) -> Mapping[str, str]:
    return {ours.name: theirs.name for ours, theirs in zip(op.columns, arm.columns, strict=True)}


RULES: Mapping[type[Operator], Callable[[Binding, Any, Needs], tuple[Operator, ...]]] = {
    Filter: _linear,
    Project: _linear,
    TableFunction: _linear,
    UnionAll: _union_all,
    Join: lambda binding, op, needs: (),
    OuterJoin: _paired,
    Mark: _paired,
    Aggregate: _grouped,
    Distinct: _grouped,
    SetOperation: _set_operation,
    Window: _partitioned,
    Top: _partitioned,
    Single: _partitioned,
    Recursive: _whole,
}
"""What each operator needs of its children; inner joins are bound together, as a region."""
