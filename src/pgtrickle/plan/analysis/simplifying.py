"""Subqueries without what cannot change their answer."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.functions_in import has_aggregates, has_set_functions
from pgtrickle.plan.lowering.constants import constant_number

_ARRAY_ITEM = "item"


def for_existence(query: exp.Expr, context: Context) -> exp.Expr:
    """The query of an EXISTS: no order, no DISTINCT, no select list, no LIMIT of a row or more."""
    query = for_membership(query)
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and not query.args.get("offset"):
        digits = constant_number(limit.expression)
        if digits is not None and int(digits) > 0:
            query.set("limit", None)
            query.set("order", None)
    if not isinstance(query, exp.Select) or query.args.get("limit") or query.args.get("offset"):
        return query
    query.set("distinct", None)
    is_grouped = query.args.get("group") or query.args.get("having") or has_aggregates(query, context)
    if not is_grouped and not has_set_functions(query, context):
        query.set("expressions", [])
        query.set("order", None)
    return query


def for_membership(query: exp.Expr) -> exp.Expr:
    """The query of an IN, ANY or ALL: no order, no DISTINCT."""
    while isinstance(query, exp.Subquery):
        query = query.this
    query = query.copy()
    if query.args.get("limit") or query.args.get("offset"):
        return query
    query.set("order", None)
    distinct = query.args.get("distinct")
    if isinstance(query, exp.Select) and isinstance(distinct, exp.Distinct) and not distinct.args.get("on"):
        query.set("distinct", None)
    return query


def as_aggregate(query: exp.Expr) -> exp.Expr:
    """`ARRAY(query)` as a query that aggregates: the empty array if there are no rows."""
    while isinstance(query, exp.Subquery):
        query = query.this
    inner = query.copy()
    order: list[exp.Expr] = []
    if isinstance(inner, exp.Select) and inner.args.get("order"):
        for number, item in enumerate(inner.args["order"].expressions):
            name = exp.to_identifier(f"{_ARRAY_ITEM}_{number}")
            inner.append("expressions", exp.Alias(this=item.this.copy(), alias=name))
            key = exp.Column(this=name.copy(), table=exp.to_identifier("listed"))
            order.append(
                exp.Ordered(this=key, desc=item.args.get("desc"), nulls_first=item.args.get("nulls_first"))
            )
    value: exp.Expr = exp.Column(this=exp.to_identifier(_ARRAY_ITEM), table=exp.to_identifier("listed"))
    argument = exp.Order(this=value, expressions=order) if order else value
    gathered = exp.Anonymous(this="array_agg", expressions=[argument])
    empty = exp.Literal.string("{}")
    result = exp.Coalesce(this=gathered, expressions=[empty])
    columns = [exp.to_identifier(_ARRAY_ITEM)]
    alias = exp.TableAlias(this=exp.to_identifier("listed"), columns=columns)
    return exp.Select(expressions=[exp.Alias(this=result, alias=exp.to_identifier("array"))]).from_(
        exp.Subquery(this=inner, alias=alias), copy=False
    )
