"""PostgreSQL's canonical text as a tree."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.analysis.limits import MAX_DEPTH, check_depth, check_text, exceeded
from pgtrickle.plan.dialect import parsed

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
    return tree.transform(_with_schema, copy=False)


def _with_schema(node: exp.Expr) -> exp.Expr:
    """`schema.call(…) FILTER (…)` as a filter of that call; the parser makes it a column of a table."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, _AROUND_CALLS):
        return node
    whole = node.this
    call = whole
    while isinstance(call.this, _AROUND_CALLS):
        call = call.this
    call.set("this", exp.Dot(this=node.args["table"], expression=call.this))
    return whole
