"""LEFT, RIGHT and FULL joins, and the columns that USING merges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Surroundings
from pgtrickle.plan.analysis.columns import as_column, type_over, with_match
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.correlation import match_both_ways, match_sides
from pgtrickle.plan.analysis.relations import Relations
from pgtrickle.plan.analysis.row_order import order_of_several
from pgtrickle.plan.analysis.scalars import null_unless
from pgtrickle.plan.analysis.scope import WHOLE_ROW, Scope, has_subquery
from pgtrickle.plan.analysis.subqueries import Attachments
from pgtrickle.plan.analysis.whole_rows import padded_row
from pgtrickle.plan.expressions import Expression, column, conjuncts
from pgtrickle.plan.operators import Join, Operator, OuterJoin
from pgtrickle.plan.refusals import refuse, refuse_correlation


def combine(left: Relations, right: Relations, merged: Mapping[str, Expression]) -> Relations:
    """Both sides' relations, their columns visible in the order that SQL gives them."""
    rest = [(n, e) for side in (left, right) for n, e in side.visible if n not in merged]
    scope = Scope(
        {**left.scope.relations, **right.scope.relations},
        {**left.scope.merged, **right.scope.merged, **merged},
        left.scope.outer,
    )
    return Relations(
        scope,
        [*left.leaves, *right.leaves],
        [*left.conditions, *right.conditions],
        [*left.deferred, *right.deferred],
        (*merged.items(), *rest),
        left.domain or right.domain,
        left.order_beside(right),
    )


def join_left(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    """LEFT JOIN: the rows of the left stay."""
    operator, padded_right, merged = _outer_join(left, right, node, surroundings)
    found = _replace_leaves(combine(left, padded_right, merged), operator, left.conditions)
    return replace(found, order=order_of_several([left.order, right.order]))


def join_right(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    """RIGHT JOIN: a LEFT JOIN from the other side, except for the order of the columns."""
    operator, padded_left, merged = _outer_join(right, left, node, surroundings)
    found = _replace_leaves(combine(padded_left, right, merged), operator, right.conditions)
    return replace(found, order=order_of_several([left.order, right.order]))


def join_full(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    """FULL JOIN: the rows of both sides stay."""
    conditions = equalities(left, right, node)
    both = combine(left, right, {})
    operators = [_uncorrelated_operator(side, surroundings) for side in (left, right)]
    if on := node.args.get("on"):
        if has_subquery(on):
            raise refuse("a subquery in the condition of a FULL JOIN")
        conditions += conjuncts(both.scope.resolve(on))
    found = match_both_ways(operators[0], operators[1], conditions, surroundings.context)
    lefts, left_operator = pad_side(left, found.left, surroundings.context)
    rights, right_operator = pad_side(right, found.right, surroundings.context)
    pairs = Join(left_operator, right_operator, ())
    merged = merged_columns(lefts, rights, node, pairs, surroundings.context, is_either=True)
    operator = OuterJoin(left_operator, right_operator, found.on, found.condition, keeps_right=True)
    both = _replace_leaves(combine(lefts, rights, merged), operator, [])
    return replace(both, order=order_of_several([left.order, right.order]))


def _replace_leaves(relations: Relations, operator: Operator, conditions: list[Expression]) -> Relations:
    relations.leaves, relations.conditions, relations.deferred = [operator], list(conditions), []
    return relations


def _outer_join(
    kept: Relations, other: Relations, node: exp.Join, surroundings: Surroundings
) -> tuple[Operator, Relations, dict[str, Expression]]:
    """The join as an operator, the other side as it is above it, and the columns of USING."""
    context = surroundings.context
    conditions = equalities(kept, other, node)
    scope = combine(kept, other, {}).scope
    outer = Attachments(kept.collapse(surroundings), kept.scope, surroundings)
    right, pending = other.join_all(surroundings)
    inner = Attachments(right, other.scope, surroundings)
    for part in on_parts(node):
        if not has_subquery(part):
            conditions += conjuncts(scope.resolve(part))
        elif not _reads(part, kept.scope):
            inner.keep(part)
        elif not _reads(part, other.scope):
            conditions.append(outer.value(part))
        else:
            raise refuse("a subquery in the condition of an outer join that reads both sides")
    conditions += [*pending, *inner.correlated]
    padded_other, right = pad_side(other, inner.operator, context)
    found = match_sides(outer.operator, right, conditions, context)
    merged = merged_columns(kept, padded_other, node, Join(found.left, found.right, ()), context)
    return OuterJoin(found.left, found.right, found.on, found.condition), padded_other, merged


def _uncorrelated_operator(side: Relations, surroundings: Surroundings) -> Operator:
    operator, pending = side.join_all(surroundings)
    if pending:
        raise refuse_correlation(f"{pending[0]} below an outer join")
    return operator


def on_parts(node: exp.Join) -> list[exp.Expr]:
    """The conditions that ON has between its ANDs."""
    on = node.args.get("on")
    if on is None:
        return []
    stack, found = [on], []
    while stack:
        bare = stack.pop().unnest()
        if isinstance(bare, exp.And):
            stack += [bare.right, bare.left]
        else:
            found.append(bare)
    return found


def _reads(node: exp.Expr, scope: Scope) -> bool:
    return any(scope.has(reference) for reference in node.find_all(exp.Column))


def using_names(node: exp.Join) -> list[str]:
    """The columns by which USING joins."""
    return [name.name for name in node.args.get("using") or []]


def equalities(left: Relations, right: Relations, node: exp.Join) -> list[Expression]:
    """What USING says of the columns of both sides."""
    pairs = [(visible(left, name), visible(right, name)) for name in using_names(node)]
    return [Expression(exp.EQ(this=own.node.copy(), expression=other.node.copy())) for own, other in pairs]


def visible(relations: Relations, name: str) -> Expression:
    """What a bare name stands for among the relations."""
    for own, expression in relations.visible:
        if own == name:
            return expression
    raise refuse(f"USING ({name})")


def merged_columns(
    left: Relations,
    right: Relations,
    node: exp.Join,
    operator: Operator,
    context: Context,
    *,
    is_either: bool = False,
) -> dict[str, Expression]:
    """The one column that USING makes of two: the left's, or whichever is there; of a type for both."""
    found: dict[str, Expression] = {}
    for name in using_names(node):
        own, other = visible(left, name), visible(right, name)
        either = Expression(exp.Coalesce(this=own.node.copy(), expressions=[other.node.copy()]))
        found[name] = either if is_either else own
        types = [type_over(context, side, operator).text for side in (own, other)]
        if not is_either and types[0] != types[1]:
            common = type_over(context, either, operator).text
            if types[0] != common:
                wide = exp.DataType.build(common, dialect="postgres", udt=True)
                found[name] = Expression(exp.Cast(this=own.node.copy(), to=wide))
    return found


def pad_side(side: Relations, operator: Operator, context: Context) -> tuple[Relations, Operator]:
    """The side with all it offers as columns, which a join can fill with nulls."""
    known: dict[Expression, Expression] = {}
    is_match: str | None = None
    columns = {
        alias: {name: e for name, e in relation.items() if name != WHOLE_ROW}
        for alias, relation in side.scope.relations.items()
    }
    offered = [e for relation in columns.values() for e in relation.values()]
    for expression in dict.fromkeys([*offered, *side.scope.merged.values(), *(e for _, e in side.visible)]):
        if expression.column in operator.names:
            known[expression] = expression
        elif expression.columns <= operator.names:
            operator, name = as_column(operator, expression, context)
            known[expression] = column(name)
        else:
            if is_match is None:
                operator, is_match = with_match(operator, context)
            known[expression] = null_unless(column(is_match), expression)
    relations: dict[str, Mapping[str, Expression]] = {
        alias: {name: known[e] for name, e in relation.items()} for alias, relation in columns.items()
    }
    for alias, relation in side.scope.relations.items():
        if WHOLE_ROW in relation:
            if is_match is None:
                operator, is_match = with_match(operator, context)
            row = padded_row(relation[WHOLE_ROW], known, is_match)
            relations[alias] = {**relations[alias], WHOLE_ROW: row}
    merged = {name: known[e] for name, e in side.scope.merged.items()}
    scope = Scope(relations, merged, side.scope.outer)
    return Relations(scope, visible=tuple((name, known[e]) for name, e in side.visible)), operator
