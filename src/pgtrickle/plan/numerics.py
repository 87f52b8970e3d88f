"""The scale of `numeric` expressions: PostgreSQL adds, subtracts and multiplies exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import is_integral

Types = Callable[[str], PgType]
"""The type of a column by its plan name."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """Digits after the point: at most `scale`; exactly that many in each value if `is_uniform`."""

    scale: int
    is_uniform: bool


def numeric_of(node: exp.Expr, types: Types) -> Numeric | None:
    """The scale of an expression over columns of these types; None if it has no known bound."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return _column(node, types)
    if isinstance(node, exp.Literal) and not node.is_string:
        _, _, decimals = node.this.partition(".")
        return None if "e" in node.this.lower() else Numeric(len(decimals), True)
    if isinstance(node, exp.Cast) and node.to.is_type("decimal"):
        return _cast(node, types)
    if isinstance(node, (exp.Neg, exp.Abs)):
        return numeric_of(node.this, types)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        left, right = numeric_of(node.left, types), numeric_of(node.right, types)
        if left is None or right is None:
            return None
        scale = left.scale + right.scale if isinstance(node, exp.Mul) else max(left.scale, right.scale)
        return Numeric(scale, left.is_uniform and right.is_uniform)
    if isinstance(node, (exp.Case, exp.Coalesce)):
        return _branches(node, types)
    return None


def _column(node: exp.Column, types: Types) -> Numeric | None:
    pg_type = types(node.name)
    if is_integral(pg_type):
        return Numeric(0, True)
    if pg_type.base == "numeric" and pg_type.scale is not None and pg_type.scale >= 0:
        return Numeric(pg_type.scale, True)
    return None


def _cast(node: exp.Cast, types: Types) -> Numeric | None:
    parameters = [int(p.name) for p in node.to.expressions]
    if parameters:
        return Numeric(parameters[1] if len(parameters) > 1 else 0, True)
    return numeric_of(node.this, types)


def _branches(node: exp.Case | exp.Coalesce, types: Types) -> Numeric | None:
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        values += [node.args["default"]] if node.args.get("default") else []
    else:
        values = [node.this, *node.expressions]
    found = [numeric_of(value, types) for value in values if not isinstance(value.unnest(), exp.Null)]
    known = [number for number in found if number is not None]
    if not known or len(known) != len(found):
        return None
    scale = max(number.scale for number in known)
    return Numeric(scale, all(number.is_uniform and number.scale == scale for number in known))
