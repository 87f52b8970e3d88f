"""The joins of a FROM clause in an order in which each has a condition to the ones before."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.analysis.condition_pushdown import equal_columns, restrict, tighten
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.disjunctions import factor, implied_condition
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.expressions import Expression, all_of, conjuncts
from pgtrickle.plan.operators import Join, Operator


def join_tree(leaves: list[Operator], conditions: list[Expression], context: Context) -> Operator:
    """All leaves joined, every condition at the lowest place that has its columns."""
    parts = [part for condition in conditions for whole in conjuncts(condition) for part in factor(whole)]
    ready, waiting = _restrict_leaves(list(leaves), parts, context)
    tree, rest = ready[0], ready[1:]
    while rest:
        following = _next(tree, rest, waiting)
        rest = [leaf for leaf in rest if leaf is not following]
        covered = tree.names | following.names
        here = [c for c in waiting if c.columns <= covered]
        waiting = [c for c in waiting if not c.columns <= covered]
        tree = _join(tree, following, here)
    for condition in waiting:
        tree = restrict(tree, condition, context)
    return tree


def _restrict_leaves(
    leaves: list[Operator], parts: list[Expression], context: Context
) -> tuple[list[Operator], list[Expression]]:
    """The leaves with conditions of their own taken in, and the conditions between several."""
    between: list[Expression] = []
    for part in parts:
        owners = [i for i, leaf in enumerate(leaves) if part.columns & leaf.names]
        if len(owners) == 1:
            leaves[owners[0]] = restrict(leaves[owners[0]], part, context)
            continue
        for i in owners:
            leaves[i] = tighten(leaves[i], part)
            alone = implied_condition(part, leaves[i].names)
            if alone is not None:
                leaves[i] = restrict(leaves[i], alone, context)
        between.append(part)
    return leaves, [_across(part, leaves, context) for part in between]


def _across(part: Expression, leaves: list[Operator], context: Context) -> Expression:
    """A condition between leaves, its single-source sides moved into their scans."""
    owners = [i for i, leaf in enumerate(leaves) if part.columns & leaf.names]
    if not owners:
        return part
    together = leaves[owners[0]]
    for i in owners[1:]:
        together = Join(together, leaves[i], ())
    pushdown = ScanPushdown(context, together)
    plain = pushdown.push(part)
    if not _is_pair(plain, pushdown.operator):
        pushdown = ScanPushdown(context, together)
        plain = pushdown.push_numbers(part)
    rebuilt = pushdown.operator
    for i in reversed(owners[1:]):
        assert isinstance(rebuilt, Join)
        leaves[i], rebuilt = rebuilt.right, rebuilt.left
    leaves[owners[0]] = rebuilt
    return plain


def _is_pair(condition: Expression, operator: Operator) -> bool:
    if not isinstance(operator, Join):
        return False
    return equal_columns(condition, operator.left, operator.right) is not None


def _next(tree: Operator, rest: list[Operator], waiting: list[Expression]) -> Operator:
    """The leaf to join next: one with an equality, else one with a condition, else the first."""
    for wants_equality in (True, False):
        for leaf in rest:
            for condition in waiting:
                reaches = condition.columns & leaf.names and condition.columns <= tree.names | leaf.names
                if reaches and (not wants_equality or isinstance(condition.node, exp.EQ)):
                    return leaf
    return rest[0]


def _join(left: Operator, right: Operator, conditions: list[Expression]) -> Operator:
    on: list[tuple[str, str]] = []
    others: list[Expression] = []
    for condition in conditions:
        pair = equal_columns(condition, left, right)
        if pair is None:
            others.append(condition)
        else:
            on.append(pair)
    return Join(left, right, tuple(on), all_of(tuple(others)))
