"""What Join, OuterJoin and Mark share: rows of two sides that belong together.

A pair matches if the columns of `on` are equal (null equals nothing) and `condition` is true.
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import comparable, require_exact, spark_expression, spark_name
from pgtrickle.plan.operators import Join, Mark, Operator, OuterJoin
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.needs import Binder, Need, Needs, needs_below, unique_needs
from pgtrickle.plan.rules.rule import Names, Pruner

Paired = Join | OuterJoin | Mark


def match_kind(op: OuterJoin | Mark) -> RuleKind:
    """A changed row needs all rows with its key, or all rows without any."""
    return RuleKind.KEYED if op.on else RuleKind.WHOLE


def condition_label(op: Paired) -> str:
    """What makes a pair, in words."""
    parts = [f"{left} = {right}" for left, right in op.on]
    if op.condition:
        parts.append(str(op.condition))
    return f"on {' and '.join(parts)}" if parts else "of all pairs"


def obstacle(op: Paired) -> str | None:
    """Why Spark cannot compare the two sides."""
    for left, right in op.on:
        if not comparable(op.left.column(left), op.right.column(right), needs_order=False):
            return f"comparing {left} with {right}"
    if op.condition:
        require_exact(op.condition, op.left.columns + op.right.columns)
    return None


def expressions(op: Paired) -> tuple[Expression, ...]:
    """The condition, if there is one."""
    return (op.condition,) if op.condition is not None else ()


def spark_expressions(op: Paired) -> list[str]:
    """The comparisons and the condition."""
    compared = [f"{left} = {right}" for left, right in op.on]
    return compared + ([str(op.condition)] if op.condition else [])


def columns_read(op: Paired) -> Names:
    """The columns of both sides that decide what is a pair."""
    own = frozenset(name for pair in op.on for name in pair)
    return own | op.condition.columns if op.condition else own


def prune_sides(op: Paired, names: Names, pruner: Pruner) -> Operator:
    """The operator over sides that have only what is read of them."""
    read = names | columns_read(op)
    left = pruner.prune(op.left, read & op.left.names)
    return replace(op, left=left, right=pruner.prune(op.right, read & op.right.names))


def postgres_condition(op: Paired) -> str:
    """What makes a pair of the relations `l` and `r`, for PostgreSQL."""
    parts = [f"l.{quoted(left)} = r.{quoted(right)}" for left, right in op.on]
    if op.condition:
        parts.append(f"({op.condition.sql})")
    return " and ".join(parts) or "true"


def spark_condition(op: Mark | OuterJoin, weight: str) -> str:
    """What makes a pair of the relations `l` and `r`, for Spark; `r` has a weight of this name."""
    parts = [f"l.{spark_name(left)} = r.{spark_name(right)}" for left, right in op.on]
    if op.condition:
        parts.append(spark_expression(op.condition, op.left.columns + op.right.columns))
    return " and ".join(parts if op.on else [any_pair("l.w0", f"r.{weight}"), *parts])


def any_pair(left: str, right: str) -> str:
    """True of two weights, which are never null.

    A join without an equation would be a broadcast, which is a job of its own.
    """
    return f"({left} is null) = ({right} is null)"


def bind_with_matches(op: Mark | OuterJoin, needs: Needs, binder: Binder) -> Operator:
    """Rows of the left that changed, are needed, or match what did on the right; all their matches."""
    left_needs, right_needs, gates = _needs_of_sides(op, needs)
    keeps_right = _keeps_right(op)
    to_right = [(right, left) for left, right in op.on]
    met = () if right_needs or keeps_right else binder.keys_of_groups(op.right, list(op.on))
    from_right = met or binder.keys(op.right, right_needs, list(op.on), is_null_safe=False)
    of_left = [*left_needs, *gates, *from_right]
    of_right = [*right_needs, *gates]
    if keeps_right:
        from_left = binder.keys(op.left, left_needs, to_right, is_null_safe=False)
        of_left += needs_below(from_left, dict(to_right))
        of_right += [*from_left, *needs_below(from_right, dict(op.on))]
    elif met or left_needs or gates or binder.is_changed(op.left):
        of_right += binder.keys(op.left, unique_needs(of_left), to_right, is_null_safe=False)
    else:
        of_right += needs_below(from_right, dict(op.on))
    left = binder.bind(op.left, unique_needs(of_left))
    return op.with_children((left, binder.bind(op.right, unique_needs(of_right))))


def _keeps_right(op: Mark | OuterJoin) -> bool:
    return isinstance(op, OuterJoin) and op.keeps_right


def _needs_of_sides(op: Mark | OuterJoin, needs: Needs) -> tuple[Needs, Needs, Needs]:
    """The needs that enter on the left, those on the right, and those for everything.

    A null in a column of a side that may be padded stands for rows of the other side.
    """
    left: list[Need] = []
    right: list[Need] = []
    gates: list[Need] = []
    for need in needs:
        ours, theirs = need.within(op.left.names), need.within(op.right.names)
        if ours.columns and not (_keeps_right(op) and need.is_null_safe):
            left.append(ours)
        elif theirs.columns and not need.is_null_safe:
            right.append(theirs)
        else:
            gates.append(need.gate)
    return tuple(left), tuple(right), tuple(gates)
