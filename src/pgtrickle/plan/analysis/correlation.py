"""Rows of a surrounding query and of a subquery brought together by their conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from pgtrickle.plan.analysis.columns import as_column, is_exact
from pgtrickle.plan.analysis.condition_pushdown import has_equality, restrict
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.disjunctions import factor, is_true
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.expressions import Expression, all_of, column, conjuncts
from pgtrickle.plan.expressions.nulls import QUANTIFIERS
from pgtrickle.plan.operators import Join, Operator
from pgtrickle.plan.properties import can_be_null
from pgtrickle.plan.refusals import refuse_correlation


@dataclass(frozen=True, slots=True)
class Matching:
    """Two operators, and what makes a row of each belong together."""

    left: Operator
    right: Operator
    on: tuple[tuple[str, str], ...] = ()
    condition: Expression | None = None


def match_sides(left: Operator, right: Operator, conditions: list[Expression], context: Context) -> Matching:
    """The two under all conditions; those on the right side alone are moved into it."""
    found = Matching(left, right)
    for condition in _parts(conditions):
        if condition.columns and condition.columns <= found.right.names:
            found = replace(found, right=restrict(found.right, condition, context))
        else:
            found = _add_condition(found, condition, context)
    return found


def match_both_ways(
    left: Operator, right: Operator, conditions: list[Expression], context: Context
) -> Matching:
    """The two under all conditions; none of the sides loses a row by them."""
    found = Matching(left, right)
    for condition in _parts(conditions):
        found = _add_condition(found, condition, context)
    return found


def _parts(conditions: list[Expression]) -> Iterator[Expression]:
    for whole in conditions:
        for part in conjuncts(whole):
            yield from (condition for condition in factor(part) if not is_true(condition))


def _add_condition(found: Matching, condition: Expression, context: Context) -> Matching:
    if not condition.columns <= found.left.names | found.right.names:
        raise refuse_correlation(f"{condition}, between queries that are not next to each other,")
    paired = _pair(found, condition, context)
    if paired is not None:
        return paired
    for form in (ScanPushdown.push, ScanPushdown.push_numbers):
        pushdown = ScanPushdown(context, Join(found.left, found.right, ()))
        pushed = form(pushdown, condition)
        both = pushdown.operator
        if is_exact(pushed, both):
            assert isinstance(both, Join)
            return Matching(both.left, both.right, found.on, _and(found.condition, pushed))
    return replace(found, condition=_and(found.condition, condition))


def _pair(found: Matching, condition: Expression, context: Context) -> Matching | None:
    """An equality of one side with the other as a pair of columns."""
    sides = equal_sides(condition, found.left)
    if sides is None or not sides[1].columns or not sides[1].columns <= found.right.names:
        return None
    own, other = sides
    is_null_safe = isinstance(equality(condition), exp.NullSafeEQ)
    if is_null_safe and can_be_null(found.left, own) and can_be_null(found.right, other):
        return None
    left, first = as_column(found.left, own, context)
    right, second = as_column(found.right, other, context)
    if not has_equality(left.column(first), right.column(second)):
        return None
    return Matching(left, right, (*found.on, (first, second)), found.condition)


def equality(condition: Expression) -> exp.EQ | exp.NullSafeEQ | None:
    """The condition as an equality, if it is one; PostgreSQL writes IS NOT DISTINCT FROM with a NOT."""
    node = condition.node.unnest()
    if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.NullSafeNEQ):
        unequal = node.this.unnest()
        return exp.NullSafeEQ(this=unequal.this.copy(), expression=unequal.expression.copy())
    # the elements of an array are compared one by one: no value of a side stands for them
    is_quantified = isinstance(node, exp.EQ) and isinstance(node.right, QUANTIFIERS)
    return node if isinstance(node, (exp.EQ, exp.NullSafeEQ)) and not is_quantified else None


def equal_sides(condition: Expression, operator: Operator) -> tuple[Expression, Expression] | None:
    """The side of an equality over the operator's columns alone, and the one over none of them."""
    node = equality(condition)
    if node is None:
        return None
    left, right = Expression(node.left), Expression(node.right)
    for own, other in ((left, right), (right, left)):
        is_own = own.columns and own.columns <= operator.names
        if is_own and not other.columns & operator.names:
            return own, other
    return None


def _and(first: Expression | None, second: Expression) -> Expression | None:
    return all_of((first, second)) if first is not None else second


@dataclass(frozen=True, slots=True)
class CorrelationKeys:
    """An operator whose columns `names` say which rows of the surrounding query a row belongs to."""

    operator: Operator
    names: tuple[str, ...]
    conditions: tuple[Expression, ...]

    def renamed_conditions(self, names: dict[str, str]) -> tuple[Expression, ...]:
        """The conditions over the columns that the names became."""
        return tuple(c.substitute({old: column(new) for old, new in names.items()}) for c in self.conditions)


def correlation_keys(
    operator: Operator, conditions: tuple[Expression, ...], what: str, context: Context
) -> CorrelationKeys:
    """The correlation as equalities with columns of the operator; `what` stands above it."""
    names: list[str] = []
    rewritten: list[Expression] = []
    for condition in conditions:
        if not condition.columns & operator.names:
            rewritten.append(condition)
            continue
        sides = equal_sides(condition, operator)
        if sides is None:
            raise refuse_correlation(f"{what} over the correlation {condition}")
        own, other = sides
        operator, name = as_column(operator, own, context)
        kind = exp.NullSafeEQ if isinstance(equality(condition), exp.NullSafeEQ) else exp.EQ
        rewritten.append(Expression(kind(this=column(name).node, expression=_enclose(other.node))))
        if name not in names:
            names.append(name)
    return CorrelationKeys(operator, tuple(names), tuple(rewritten))


def _enclose(node: exp.Expr) -> exp.Expr:
    bare = node.unnest().copy()
    return bare if isinstance(bare, exp.Column) else exp.Paren(this=bare)
