"""PostgreSQL's canonical text as a tree."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.expressions.dialect import parsed
from pgtrickle.plan.limits import MAX_DEPTH, check_depth, check_text, exceeded
from pgtrickle.plan.refusals import refuse

_AROUND_CALLS = (exp.Filter, exp.WithinGroup, exp.Window)


def parse(text: str) -> exp.Expr:
    """The text as a tree; refused if our parser cannot read it, or if it is too much of it."""
    check_text(text)
    try:
        tree = parsed(text)
    except RecursionError:
        raise exceeded("MAX_DEPTH", MAX_DEPTH) from None
    if tree is None:
        raise refuse("SQL that our parser cannot read")
    check_depth(tree)
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
