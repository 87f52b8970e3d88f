"""What follows from a condition whose parts are joined by OR."""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp

from pgtrickle.plan.expressions import Expression, all_of, conjuncts


def factor(condition: Expression) -> list[Expression]:
    """The condition as conjuncts: what all alternatives of an OR demand stands before it."""
    alternatives = [list(conjuncts(branch)) for branch in disjuncts(condition)]
    if len(alternatives) == 1:
        return [condition]
    shared = [part for part in alternatives[0] if all(part in other for other in alternatives[1:])]
    if not shared:
        return [condition]
    rests = [tuple(part for part in branch if part not in shared) for branch in alternatives]
    if not all(rests):
        # an alternative that demands nothing more makes the others superfluous
        return shared
    return [*shared, _any_of(rests)]


def implied_condition(condition: Expression, names: Set[str]) -> Expression | None:
    """What the condition demands of the columns of these names alone, as far as an OR tells."""
    alternatives = [list(conjuncts(branch)) for branch in disjuncts(condition)]
    if len(alternatives) == 1:
        return None
    own = [
        tuple(part for part in branch if part.columns and part.columns <= names) for branch in alternatives
    ]
    return _any_of(own) if all(own) else None


def disjuncts(condition: Expression) -> list[Expression]:
    """The parts of a condition of which one must hold."""
    node = condition.node.unnest()
    if isinstance(node, exp.Or):
        return [*disjuncts(Expression(node.left)), *disjuncts(Expression(node.right))]
    return [Expression(node)]


def is_true(condition: Expression) -> bool:
    """Whether the condition is the constant true."""
    node = condition.node.unnest()
    return isinstance(node, exp.Boolean) and bool(node.this)


def _any_of(branches: list[tuple[Expression, ...]]) -> Expression:
    nodes = []
    for branch in branches:
        whole = all_of(branch)
        assert whole is not None
        nodes.append(exp.Paren(this=whole.node) if isinstance(whole.node, exp.And) else whole.node)
    return Expression(exp.or_(*nodes, copy=False))
