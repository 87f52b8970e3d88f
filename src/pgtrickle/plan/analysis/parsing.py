"""PostgreSQL's canonical text as a tree."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.analysis.limits import MAX_DEPTH, check_depth, check_text, exceeded
from pgtrickle.plan.dialect import parsed


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
    return tree
