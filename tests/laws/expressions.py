"""The meaning of expressions in plain Python, with SQL's three-valued logic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from pgtrickle.plan.expressions import Expression

Named = Mapping[str, Any]
Meaning = Callable[[Named], Any]
"""What an expression is for a row by its column names; None is SQL's null."""

NOW = "now()"
"""The name under which a row holds the time at which it is looked at."""

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


@cache
def meaning(text: str) -> Meaning:
    """What the text of an expression means."""
    return meaning_of(parsed(text))


def value(expression: Expression, row: Named) -> Any:
    """The value of an expression for a row."""
    return meaning(expression.sql)(row)


def is_true(condition: Expression | None, row: Named) -> bool:
    """Whether a condition holds; no condition holds always, null does not."""
    return condition is None or value(condition, row) is True


def meaning_of(node: exp.Expr) -> Meaning:
    """What a tree means."""
    node = node.unnest()
    if type(node) in _STRICT:
        return _strict(_STRICT[type(node)], meaning_of(node.this), meaning_of(node.expression))
    match node:
        case exp.Column():
            return operator.itemgetter(node.name)
        case exp.CurrentTimestamp():
            return operator.itemgetter(NOW)
        case exp.Literal():
            return _always(int(node.this))
        case exp.Var():
            return meaning_of(parsed(node.name))
        case exp.Null():
            return _always(None)
        case exp.Boolean():
            return _always(node.this)
        case exp.And() | exp.Or():
            return _connected(isinstance(node, exp.Or), meaning_of(node.this), meaning_of(node.expression))
        case exp.Not():
            return _negated(meaning_of(node.this))
        case exp.Is():
            left, right = meaning_of(node.this), meaning_of(node.expression)
            return lambda row: left(row) is right(row)
        case exp.Case():
            return _case(node)
        case exp.Coalesce():
            return _first([meaning_of(part) for part in (node.this, *node.expressions)])
        case exp.Cast():
            return meaning_of(node.this)
        case _:
            raise TypeError(f"{type(node).__name__}: {node.sql()}")


def _always(constant: Any) -> Meaning:
    return lambda row: constant


def _strict(compute: Callable[[Any, Any], Any], left: Meaning, right: Meaning) -> Meaning:
    def both(row: Named) -> Any:
        one, other = left(row), right(row)
        return None if one is None or other is None else compute(one, other)

    return both


def _negated(inner: Meaning) -> Meaning:
    def negated(row: Named) -> bool | None:
        found = inner(row)
        return None if found is None else not found

    return negated


def _connected(decisive: bool, left: Meaning, right: Meaning) -> Meaning:
    """AND ends at false, OR at true; otherwise a null on either side makes it null."""

    def connected(row: Named) -> bool | None:
        sides = {left(row), right(row)}
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive

    return connected


def _first(parts: list[Meaning]) -> Meaning:
    def first(row: Named) -> Any:
        return next((found for found in (part(row) for part in parts) if found is not None), None)

    return first


def _case(node: exp.Case) -> Meaning:
    branches = [(meaning_of(branch.this), meaning_of(branch.args["true"])) for branch in node.args["ifs"]]
    default = node.args.get("default")
    otherwise = _always(None) if default is None else meaning_of(default)

    def chosen(row: Named) -> Any:
        for condition, result in branches:
            if condition(row) is True:
                return result(row)
        return otherwise(row)

    return chosen
