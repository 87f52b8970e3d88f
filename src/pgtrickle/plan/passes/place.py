"""Decides where each operator is evaluated: by Spark if that is exact, otherwise by PostgreSQL."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.aggregates import OrderEffect, aggregate_of
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import Aggregate, Call, Evaluated, Operator, Scan
from pgtrickle.plan.refusals import refuse
from pgtrickle.plan.rules import RULES

_FLOATS = frozenset({"real", "double precision"})


def place(op: Operator) -> Operator:
    """The tree with what Spark cannot give exactly marked as evaluated by PostgreSQL."""
    reason = _obstacle(op)
    if reason is None:
        return op.with_children(tuple(place(child) for child in op.children))
    _require_repeatable(op)
    return Evaluated(op, reason)


def _obstacle(op: Operator) -> str | None:
    """Why Spark cannot evaluate the operator itself; None if it can."""
    try:
        return RULES[type(op)].obstacle(op)
    except UnsupportedQuery as refusal:
        return refusal.message.removesuffix(" cannot be followed incrementally")


def _require_repeatable(op: Operator) -> None:
    """Refuse what PostgreSQL may answer otherwise when it is asked again about the same rows."""
    for part in op.walk():
        if isinstance(part, Aggregate):
            keys = frozenset(key.expression.column or "" for key in part.keys)
            for call in part.calls:
                # all values of a group are the same if they are made of its keys
                if not Expression(_bare(call.expression.node)).columns <= keys:
                    _require_order(call, part.child)


def require_equality(op: Operator) -> None:
    """Refuse values without equality below what PostgreSQL evaluates: it could not subtract the old rows.

    Call it after pruning, when columns that nobody reads are gone.
    """
    evaluated = [part for part in op.walk() if isinstance(part, Evaluated)]
    for part in (below for whole in evaluated for below in whole.walk()):
        if isinstance(part, Scan):
            for column in part.columns:
                if not column.type.has_equality:
                    raise refuse(
                        f"{column.type.base}, which has no equality, below what PostgreSQL evaluates,"
                    )


def _require_order(call: Call, child: Operator) -> None:
    function = aggregate_of(call.expression.node)
    has_order = next(_bare(call.expression.node).find_all(exp.Order), None) is not None
    # DISTINCT puts the values into their own order
    has_order = has_order or _bare(call.expression.node).find(exp.Distinct) is not None
    if function is not None and function.order is OrderEffect.SEQUENCE and not has_order:
        raise refuse(f"{call.expression} without ORDER BY below another operator")
    reads_floats = any(
        child.column(n).type.base in _FLOATS for n in call.expression.columns if n in child.names
    )
    keeps_floats = function is not None and function.keeps_floats
    if reads_floats and call.function is None and not keeps_floats:
        raise refuse(
            f"{call.expression} of floats, whose last digits depend on the order, below another operator"
        )


def _bare(call: exp.Expr) -> exp.Expr:
    """The call without its FILTER and WITHIN GROUP."""
    while isinstance(call, (exp.Filter, exp.WithinGroup)):
        call = call.this
    return call
