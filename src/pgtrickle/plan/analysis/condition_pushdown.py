"""Conditions brought to the lowest place where they say the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from pgtrickle.plan.analysis.columns import is_exact
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import comparable
from pgtrickle.plan.operators import Column, Filter, Join, Operator
from pgtrickle.plan.rules import RULES


def restrict(operator: Operator, condition: Expression, context: Context) -> Operator:
    """The rows of the operator for which the condition is true."""
    if not condition.columns:
        return Filter(operator, condition)
    operator = tighten(operator, condition)
    pushed = RULES[type(operator)].push(operator, condition, partial(_restrict_in, context))
    if pushed is not None:
        return pushed
    if isinstance(operator, Join):
        return _pair_or_filter(operator, condition, context)
    return _filter_above(operator, condition, context)


def _restrict_in(context: Context, operator: Operator, condition: Expression) -> Operator:
    return restrict(operator, condition, context)


def _pair_or_filter(join: Join, condition: Expression, context: Context) -> Operator:
    """A condition between the sides: a pair of columns if it says that two are equal."""
    for form in (ScanPushdown.push, ScanPushdown.push_numbers):
        pushdown = ScanPushdown(context, join)
        pushed = form(pushdown, condition)
        both = pushdown.operator
        assert isinstance(both, Join)
        pair = equal_columns(pushed, both.left, both.right)
        if pair is not None:
            return replace(both, on=(*both.on, pair))
    return _filter_above(join, condition, context)


def _filter_above(operator: Operator, condition: Expression, context: Context) -> Operator:
    """The condition above the operator, its single-source parts computed in the scans."""
    for form in (ScanPushdown.push, ScanPushdown.push_numbers):
        pushdown = ScanPushdown(context, operator)
        pushed = form(pushdown, condition)
        if is_exact(pushed, pushdown.operator):
            return Filter(pushdown.operator, pushed)
    return Filter(operator, condition)


def tighten(operator: Operator, condition: Expression) -> Operator:
    """The operator without the padding that the condition would reject anyway."""
    return RULES[type(operator)].tighten(operator, condition, tighten)


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
