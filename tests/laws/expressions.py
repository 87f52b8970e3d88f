"""Evaluates the expressions of the laws in plain Python, with SQL's three-valued logic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

Row = Mapping[str, Any]

_STRICT: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}


@cache
def parsed(text: str, dialect: str = "postgres") -> exp.Expr:
    """SQL text as a tree."""
    return sqlglot.parse_one(text, dialect=dialect)


def value(node: exp.Expr, row: Row) -> Any:
    """The value of an expression over a row; None is SQL's null."""
    node = node.unnest()
    if (compute := _STRICT.get(type(node))) is not None:
        left, right = value(node.this, row), value(node.expression, row)
        return None if left is None or right is None else compute(left, right)
    match node:
        case exp.Column():
            return row[node.name]
        case exp.Literal():
            return int(node.this)
        case exp.Var():
            return value(parsed(node.name), row)
        case exp.Null():
            return None
        case exp.Boolean():
            return node.this
        case exp.And() | exp.Or():
            return _connected(node, row)
        case exp.Not():
            inner = value(node.this, row)
            return None if inner is None else not inner
        case exp.Is():
            return value(node.this, row) is value(node.expression, row)
        case exp.Case():
            return _case(node, row)
        case exp.Coalesce():
            parts = (value(part, row) for part in (node.this, *node.expressions))
            return next((part for part in parts if part is not None), None)
        case exp.Cast():
            return value(node.this, row)
        case _:
            raise TypeError(f"{type(node).__name__}: {node.sql()}")


def is_true(node: exp.Expr | None, row: Row) -> bool:
    """Whether a condition holds; no condition holds always, null does not."""
    return node is None or value(node, row) is True


def _connected(node: exp.Expr, row: Row) -> bool | None:
    """AND ends at false, OR at true; otherwise a null on either side makes it null."""
    decisive = isinstance(node, exp.Or)
    sides = {value(node.this, row), value(node.expression, row)}
    if decisive in sides:
        return decisive
    return None if None in sides else not decisive


def _case(node: exp.Case, row: Row) -> Any:
    for branch in node.args["ifs"]:
        if is_true(branch.this, row):
            return value(branch.args["true"], row)
    default = node.args.get("default")
    return None if default is None else value(default, row)
