"""Where each operator is evaluated: by Spark if that is exact, otherwise by PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import comparable, require_exact
from pgtrickle.plan.operators import (
    Aggregate,
    Call,
    Column,
    Distinct,
    Evaluated,
    Filter,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SetOperation,
    Single,
    TableFunction,
    Top,
    UnionAll,
    Values,
    Window,
)
from pgtrickle.plan.trees import with_children

Reason = str | None

_IN_ANY_ORDER = frozenset(
    {
        "array_agg",
        "string_agg",
        "groupconcat",
        "arrayagg",
        "json_agg",
        "jsonb_agg",
        "json_object_agg",
        "jsonb_object_agg",
        "xmlagg",
    }
)
_FLOATS = frozenset({"real", "double precision"})


def placed(op: Operator) -> Operator:
    """The tree with what Spark cannot give exactly marked as evaluated by PostgreSQL."""
    reason = _reason(op)
    if reason is None:
        return with_children(op, tuple(placed(child) for child in op.children))
    _require_repeatable(op)
    return Evaluated(op, reason)


def _reason(op: Operator) -> Reason:
    """Why Spark cannot evaluate the operator itself; None if it can."""
    try:
        return _REASONS[type(op)](op)
    except UnsupportedQuery as refusal:
        return refusal.message.removesuffix(" cannot be followed incrementally")


def _inexact(expressions: Iterable[Expression], columns: tuple[Column, ...]) -> Reason:
    for expression in expressions:
        require_exact(expression, columns)
    return None


def _filter(op: Filter) -> Reason:
    return _inexact([op.condition], op.child.columns)


def _project(op: Project) -> Reason:
    return _inexact(op.expressions, op.child.columns)


def _pairs(op: Join | OuterJoin | Mark) -> Reason:
    for left, right in op.on:
        if not comparable(op.left.column(left), op.right.column(right), needs_order=False):
            return f"comparing {left} with {right}"
    return _inexact([op.condition] if op.condition else [], op.left.columns + op.right.columns)


def _aggregate(op: Aggregate) -> Reason:
    for call in op.calls:
        if call.function is None:
            return str(call.expression)
    return _inexact([key.expression for key in op.keys], op.child.columns) or _unequal(
        [key.column for key in op.keys]
    )


def _unequal(columns: Iterable[Column]) -> Reason:
    for column in columns:
        if not column.carrier.equality:
            return f"comparing values of type {column.type.text}"
    return None


def _rows(op: Distinct) -> Reason:
    return _unequal(op.columns)


def _arms(op: UnionAll | SetOperation) -> Reason:
    for columns in zip(*(arm.columns for arm in op.children), strict=True):
        forms = {(c.carrier.spark, c.carrier.carry) for c in columns}
        if len(forms) > 1:
            return f"bringing {' and '.join(sorted({c.type.text for c in columns}))} together"
    return _unequal(op.columns) if isinstance(op, SetOperation) else None


def _single(op: Single) -> Reason:
    return _unequal([op.column(name) for name in op.keys])


_REASONS: Mapping[type[Operator], Callable[[Any], Reason]] = {
    Scan: lambda op: None,
    Values: lambda op: None,
    Filter: _filter,
    Project: _project,
    Join: _pairs,
    OuterJoin: _pairs,
    Mark: _pairs,
    Aggregate: _aggregate,
    Distinct: _rows,
    UnionAll: _arms,
    SetOperation: _arms,
    Single: _single,
    Window: lambda op: str(op.calls[0].expression) if op.calls else "a window function",
    Top: lambda op: "an order",
    TableFunction: lambda op: str(op.call),
    Recursive: lambda op: "WITH RECURSIVE",
}


def _require_repeatable(op: Operator) -> None:
    """Refuse what PostgreSQL may answer otherwise when it is asked again about the same rows."""
    for part in op.walk():
        if isinstance(part, Aggregate):
            for call in part.calls:
                _require_order(call, part.child)


def require_equality(op: Operator) -> None:
    """Refuse values that cannot be taken off again: PostgreSQL could not say which rows are equal.

    Asked once the columns that nobody reads are gone.
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
    function = call.expression.node
    while isinstance(function, (exp.Filter, exp.WithinGroup)):
        function = function.this
    name = function.name.lower() if isinstance(function, exp.Anonymous) else function.key
    is_ordered = next(function.find_all(exp.Order), None) is not None
    if name.replace("_", "") in {other.replace("_", "") for other in _IN_ANY_ORDER} and not is_ordered:
        raise refuse(f"{call.expression} without ORDER BY below another operator")
    reads_floats = any(
        child.column(n).type.base in _FLOATS for n in call.expression.columns if n in child.names
    )
    is_exact = isinstance(function, (exp.Min, exp.Max, exp.Count)) or name in _IN_ANY_ORDER
    if reads_floats and call.function is None and not is_exact:
        raise refuse(
            f"{call.expression} of floats, whose last digits depend on the order, below another operator"
        )
