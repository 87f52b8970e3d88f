"""PostgreSQL's canonical text as a tree."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.expressions.dialect import parse_or_none
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.plan.refusals import refuse

_AROUND_CALLS = (exp.Filter, exp.WithinGroup, exp.Window)


def parse(text: str, limits: QueryLimits = USUAL_LIMITS) -> exp.Expr:
    """The text as a tree; refused if our parser cannot read it, or if it is too much of it."""
    limits.check_text(text)
    try:
        tree = parse_or_none(text)
    except RecursionError:
        raise limits.limit_error("max_depth") from None
    if tree is None:
        raise refuse("SQL that our parser cannot read")
    limits.check_depth(tree)
    for node in list(tree.find_all(exp.Column, exp.Dot)):
        _move_schema(node)
    return tree


def _move_schema(node: exp.Expr) -> None:
    """Make `schema.call(…) FILTER (…)` a filter of that call; the parser puts the schema before it all."""
    whole = node.this if isinstance(node, exp.Column) else node.expression
    if not isinstance(whole, _AROUND_CALLS):
        return
    schema = node.args["table"] if isinstance(node, exp.Column) else node.this
    call = whole
    while isinstance(call.this, _AROUND_CALLS):
        call = call.this
    call.set("this", exp.Dot(this=schema.copy(), expression=call.this.copy()))
    node.replace(whole)
