"""The scale of `numeric` expressions: PostgreSQL adds, subtracts and multiplies exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import INTEGER_DIGITS, MAX_DIGITS, is_integral
from pgtrickle.plan.expressions import is_null

Types = Callable[[str], PgType]
"""The type of a column by its plan name."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """At most `before` digits before the point and `scale` after it; exactly `scale` if `is_uniform`."""

    before: int
    scale: int
    is_uniform: bool


def numeric_of(node: exp.Expr, types: Types) -> Numeric | None:
    """The scale of an expression over columns of these types; None if it has no known bound."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return _column(node, types)
    if isinstance(node, exp.Literal) and not node.is_string:
        whole, _, decimals = node.this.partition(".")
        return None if "e" in node.this.lower() else Numeric(len(whole), len(decimals), True)
    if isinstance(node, exp.Cast) and node.to.is_type("decimal"):
        return _cast(node, types)
    if isinstance(node, (exp.Neg, exp.Abs)):
        return numeric_of(node.this, types)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        left, right = numeric_of(node.left, types), numeric_of(node.right, types)
        if left is None or right is None:
            return None
        is_uniform = left.is_uniform and right.is_uniform
        if isinstance(node, exp.Mul):
            return Numeric(left.before + right.before, left.scale + right.scale, is_uniform)
        return Numeric(max(left.before, right.before) + 1, max(left.scale, right.scale), is_uniform)
    if isinstance(node, (exp.Case, exp.Coalesce)):
        return _branches(node, types)
    return None


def _column(node: exp.Column, types: Types) -> Numeric | None:
    pg_type = types(node.name)
    if is_integral(pg_type):
        return Numeric(INTEGER_DIGITS[pg_type.base], 0, True)
    if pg_type.base != "numeric" or pg_type.precision is None or pg_type.scale is None:
        return None
    if pg_type.scale < 0 or pg_type.precision > MAX_DIGITS:
        return None
    return Numeric(max(pg_type.precision - pg_type.scale, 0), pg_type.scale, True)


def _cast(node: exp.Cast, types: Types) -> Numeric | None:
    parameters = [int(p.name) for p in node.to.expressions]
    if parameters:
        scale = parameters[1] if len(parameters) > 1 else 0
        return Numeric(max(parameters[0] - scale, 0), scale, True)
    return numeric_of(node.this, types)


def _branches(node: exp.Case | exp.Coalesce, types: Types) -> Numeric | None:
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        values += [node.args["default"]] if node.args.get("default") else []
    else:
        values = [node.this, *node.expressions]
    found = [numeric_of(value, types) for value in values if not is_null(value)]
    known = [number for number in found if number is not None]
    if not known or len(known) != len(found):
        return None
    scale = max(number.scale for number in known)
    is_uniform = all(number.is_uniform and number.scale == scale for number in known)
    return Numeric(max(number.before for number in known), scale, is_uniform)
