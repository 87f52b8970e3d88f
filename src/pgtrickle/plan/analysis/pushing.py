"""Conditions brought to the lowest place where they say the same."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.columns import is_exact
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.scan_columns import Settler, raw
from pgtrickle.plan.expressions import Expression, all_of, column
from pgtrickle.plan.expressions.nulls import rejects_nulls
from pgtrickle.plan.lowering.exactness import comparable
from pgtrickle.plan.operators import (
    Aggregate,
    Column,
    Distinct,
    Filter,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Scan,
    TableFunction,
    UnionAll,
    Window,
)
from pgtrickle.plan.properties import text_columns
from pgtrickle.plan.rules.project import is_extending, over_child


def restricted(operator: Operator, condition: Expression, context: Context) -> Operator:
    """The rows of the operator for which the condition is true."""
    names = condition.columns
    if not names:
        return Filter(operator, condition)
    operator = tightened(operator, condition)
    if isinstance(operator, Scan):
        old = (operator.condition,) if operator.condition else ()
        return replace(operator, condition=all_of((*old, raw(operator, condition))))
    if isinstance(operator, Filter):
        return replace(operator, child=restricted(operator.child, condition, context))
    if isinstance(operator, Distinct):
        return Distinct(_same_columns(operator.child, restricted(operator.child, condition, context)))
    if isinstance(operator, Join):
        return _joined(operator, condition, context)
    if isinstance(operator, OuterJoin):
        if names <= operator.left.names and not operator.keeps_right:
            return replace(operator, left=restricted(operator.left, condition, context))
    elif isinstance(operator, Mark):
        if names <= operator.left.names:
            return replace(operator, left=restricted(operator.left, condition, context))
    elif isinstance(operator, (Project, TableFunction, Window, Aggregate, UnionAll)):
        below = _below(operator, condition, context)
        if below is not None:
            return below
    return _filtered(operator, condition, context)


def _below(
    operator: Project | TableFunction | Window | Aggregate | UnionAll, condition: Expression, context: Context
) -> Operator | None:
    """The operator over restricted rows, if the condition says the same there."""
    names = condition.columns
    if isinstance(operator, UnionAll):
        return UnionAll(tuple(_arm(operator, arm, condition, context) for arm in operator.arms))
    if isinstance(operator, Aggregate):
        known = {key.column.name: key.expression for key in operator.keys}
    elif isinstance(operator, Window):
        known = {name: column(name) for name in operator.partition}
    elif isinstance(operator, Project) and not is_extending(operator):
        known = {c.name: e for c, e in zip(operator.columns, operator.expressions, strict=True)}
    else:
        known = {name: column(name) for name in operator.child.names}
    if not all(name in known and known[name].column is not None for name in names):
        return None
    child = restricted(operator.child, condition.substitute(known), context)
    if isinstance(operator, Project) and is_extending(operator):
        return over_child(operator, child)
    return replace(operator, child=child)


def _arm(operator: UnionAll, arm: Operator, condition: Expression, context: Context) -> Operator:
    own = {c.name: column(a.name) for c, a in zip(operator.columns, arm.columns, strict=True)}
    return _same_columns(arm, restricted(arm, condition.substitute(own), context))


def _same_columns(before: Operator, after: Operator) -> Operator:
    """The operator with just the columns it had."""
    if after.columns == before.columns:
        return after
    return Project(after, before.columns, tuple(column(c.name) for c in before.columns))


def _joined(join: Join, condition: Expression, context: Context) -> Operator:
    if condition.columns <= join.left.names:
        return replace(join, left=restricted(join.left, condition, context))
    if condition.columns <= join.right.names:
        return replace(join, right=restricted(join.right, condition, context))
    for form in (Settler.settled, Settler.computed):
        settler = Settler(context, join)
        settled = form(settler, condition)
        both = settler.operator
        assert isinstance(both, Join)
        pair = equal_columns(settled, both.left, both.right)
        if pair is not None:
            return replace(both, on=(*both.on, pair))
    return _filtered(join, condition, context)


def _filtered(operator: Operator, condition: Expression, context: Context) -> Operator:
    """The condition above the operator, its single-source parts computed in the scans."""
    for form in (Settler.settled, Settler.computed):
        settler = Settler(context, operator)
        settled = form(settler, condition)
        if is_exact(settled, settler.operator):
            return Filter(settler.operator, settled)
    return Filter(operator, condition)


def tightened(operator: Operator, condition: Expression) -> Operator:
    """The operator without the padding that the condition would reject anyway."""
    if isinstance(operator, (Filter, TableFunction)):
        return replace(operator, child=tightened(operator.child, condition))
    if isinstance(operator, Project) and is_extending(operator):
        return over_child(operator, tightened(operator.child, condition))
    if isinstance(operator, Mark):
        return replace(operator, left=tightened(operator.left, condition))
    if isinstance(operator, Join):
        left, right = tightened(operator.left, condition), tightened(operator.right, condition)
        return replace(operator, left=left, right=right)
    if isinstance(operator, OuterJoin):
        return _less_padded(operator, condition)
    return operator


def _less_padded(join: OuterJoin, condition: Expression) -> Operator:
    texts = text_columns(join)
    rejects_right = rejects_nulls(condition.node, join.right.names, texts)
    rejects_left = join.keeps_right and rejects_nulls(condition.node, join.left.names, texts)
    left, right = join.left, join.right
    if rejects_right and (rejects_left or not join.keeps_right):
        return tightened(Join(left, right, join.on, join.condition), condition)
    if rejects_left:
        return tightened(OuterJoin(left, right, join.on, join.condition), condition)
    if rejects_right:
        swapped = tuple((other, own) for own, other in join.on)
        return tightened(OuterJoin(right, left, swapped, join.condition), condition)
    if not join.keeps_right:
        return replace(join, left=tightened(left, condition))
    return join


def equal_columns(condition: Expression, left: Operator, right: Operator) -> tuple[str, str] | None:
    """The column of each side, if the condition says that the two are equal."""
    node = condition.node.unnest()
    if not isinstance(node, exp.EQ):
        return None
    first, second = Expression(node.left).column, Expression(node.right).column
    if first is None or second is None:
        return None
    if first not in left.names:
        first, second = second, first
    if first not in left.names or second not in right.names:
        return None
    return (first, second) if has_equality(left.column(first), right.column(second)) else None


def has_equality(left: Column, right: Column) -> bool:
    """Whether two columns can be a pair of a join: Spark or PostgreSQL compares them as they are."""
    return comparable(left, right, needs_order=False) or left.type.text == right.type.text
