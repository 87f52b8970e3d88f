"""Subqueries without what cannot change their answer."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import has_aggregates, has_set_functions, set_functions
from pgtrickle.plan.expressions.constants import constant_number


def for_existence(query: exp.Expr, context: Context) -> exp.Expr:
    """The query of an EXISTS: no order, no DISTINCT, no select list, no LIMIT of a row or more."""
    query = for_membership(query, context)
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and not query.args.get("offset"):
        digits = constant_number(limit.expression)
        if digits is not None and int(digits) > 0:
            query.set("limit", None)
    if not isinstance(query, exp.Select) or query.args.get("limit") or query.args.get("offset"):
        return query
    query.set("distinct", None)
    is_expanding = has_set_functions(query, context) or _expands_in_order(query, context)
    if not is_expanding:
        query.set("order", None)
    is_grouped = query.args.get("group") or query.args.get("having") or has_aggregates(query, context)
    if not is_grouped and not is_expanding:
        query.set("expressions", [])
    return query


def for_membership(query: exp.Expr, context: Context) -> exp.Expr:
    """The query of an IN, ANY or ALL: no order, no DISTINCT."""
    while isinstance(query, exp.Subquery):
        query = query.this
    query = query.copy()
    distinct = query.args.get("distinct") if isinstance(query, exp.Select) else None
    has_on = isinstance(distinct, exp.Distinct) and distinct.args.get("on")
    if query.args.get("limit") or query.args.get("offset") or has_on:
        return query
    if not _expands_in_order(query, context):
        query.set("order", None)
    if distinct:
        query.set("distinct", None)
    return query


def _expands_in_order(query: exp.Expr, context: Context) -> bool:
    """Whether ORDER BY calls a function that returns a set, so that there are more rows with it."""
    order = query.args.get("order")
    return order is not None and any(set_functions(item, context) for item in order.expressions)


def as_aggregate(query: exp.Expr) -> exp.Expr:
    """`ARRAY(query)` as a query that aggregates in its order: the empty array if there are no rows."""
    item, listed = exp.to_identifier("item"), exp.to_identifier("listed")
    gathered = exp.Anonymous(this="array_agg", expressions=[exp.Column(this=item, table=listed)])
    result = exp.Coalesce(this=gathered, expressions=[exp.Literal.string("{}")])
    alias = exp.TableAlias(this=listed.copy(), columns=[item.copy()])
    return exp.Select(expressions=[exp.Alias(this=result, alias=exp.to_identifier("array"))]).from_(
        exp.Subquery(this=query.copy(), alias=alias), copy=False
    )
