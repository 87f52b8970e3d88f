"""The joins of a FROM clause in an order in which each has a condition to the ones before."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.settle import Settler
from pgtrickle.plan.expressions import Expression, all_of, conjuncts
from pgtrickle.plan.lowering.exactness import comparable, require_exact
from pgtrickle.plan.operators import Filter, Join, Operator


def join_tree(leaves: list[Operator], conditions: list[Expression], context: Context) -> Operator:
    """All leaves joined, every condition at the lowest place that has its columns."""
    parts = [part for condition in conditions for part in conjuncts(condition)]
    ready, waiting = _settled_leaves(leaves, parts, context)
    tree, rest = ready[0], ready[1:]
    while rest:
        following = _next(tree, rest, waiting)
        rest = [leaf for leaf in rest if leaf is not following]
        covered = tree.names | following.names
        here = [c for c in waiting if c.columns <= covered]
        waiting = [c for c in waiting if not c.columns <= covered]
        tree = _joined(tree, following, here)
    return _filtered(tree, waiting)


def _settled_leaves(
    leaves: list[Operator], parts: list[Expression], context: Context
) -> tuple[list[Operator], list[Expression]]:
    """The leaves with conditions of their own taken in, and the conditions between several."""
    waiting: list[Expression] = []
    for part in parts:
        owners = [i for i, leaf in enumerate(leaves) if part.columns & leaf.names]
        settlers = {i: Settler(context, leaves[i]) for i in owners}
        if len(owners) == 1:
            leaves[owners[0]] = _taken_in(settlers[owners[0]], part)
            continue
        settled = _across(part, settlers, leaves, context)
        waiting.append(settled)
    return leaves, waiting


def _taken_in(settler: Settler, part: Expression) -> Operator:
    scan = settler.scan_of(part)
    if scan is not None:
        settler.restrict(scan, part)
        return settler.operator
    settled = settler.settled(part)
    require_exact(settled, settler.operator.columns)
    return Filter(settler.operator, settled)


def _across(
    part: Expression, settlers: dict[int, Settler], leaves: list[Operator], context: Context
) -> Expression:
    """A condition between leaves, its single-source sides moved into their scans."""
    together: Operator | None = None
    for i in settlers:
        together = leaves[i] if together is None else Join(together, leaves[i], ())
    if together is None:
        return part
    settler = Settler(context, together)
    plain = settler.settled(part)
    if _equal_columns(plain, settler.operator) is None:
        settler = Settler(context, together)
        plain = settler.computed(part)
    rebuilt = settler.operator
    for i in reversed(list(settlers)):
        if isinstance(rebuilt, Join) and len(settlers) > 1 and i != next(iter(settlers)):
            leaves[i], rebuilt = rebuilt.right, rebuilt.left
        else:
            leaves[i] = rebuilt
    return plain


def _next(tree: Operator, rest: list[Operator], waiting: list[Expression]) -> Operator:
    """The leaf to join next: one with an equality, else one with a condition, else the first."""
    for wants_equality in (True, False):
        for leaf in rest:
            for condition in waiting:
                reaches = condition.columns & leaf.names and condition.columns <= tree.names | leaf.names
                if reaches and (not wants_equality or isinstance(condition.node, exp.EQ)):
                    return leaf
    return rest[0]


def _joined(left: Operator, right: Operator, conditions: list[Expression]) -> Operator:
    on: list[tuple[str, str]] = []
    others: list[Expression] = []
    both = Join(left, right, ())
    for condition in conditions:
        pair = _equal_columns(condition, both)
        if pair is None:
            require_exact(condition, both.columns)
            others.append(condition)
        else:
            on.append(pair if pair[0] in left.names else (pair[1], pair[0]))
    return replace(both, on=tuple(on), condition=all_of(tuple(others)))


def _equal_columns(condition: Expression, operator: Operator) -> tuple[str, str] | None:
    """The two columns, one of each side of the join, if the condition says that they are equal."""
    node = condition.node
    if not isinstance(node, exp.EQ) or not isinstance(operator, Join):
        return None
    first, second = Expression(node.left).column, Expression(node.right).column
    if first is None or second is None:
        return None
    left = {name for name in (first, second) if name in operator.left.names}
    if len(left) != 1:
        return None
    is_exact = comparable(operator.column(first), operator.column(second), needs_order=False)
    return (first, second) if is_exact else None


def _filtered(tree: Operator, waiting: list[Expression]) -> Operator:
    """Conditions over nothing in particular, such as `false`."""
    for condition in waiting:
        require_exact(condition, tree.columns)
        tree = Filter(tree, condition)
    return tree
