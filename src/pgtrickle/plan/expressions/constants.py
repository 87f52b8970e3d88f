"""Numbers that stand in a query, as Spark writes them without rounding any."""

from __future__ import annotations

import re

from sqlglot import exp

_NUMBER = re.compile(r"-?\d+(\.\d+)?\Z")
_WHOLE = ("smallint", "int", "bigint")


def constant_number(node: exp.Expr) -> str | None:
    """The digits of a constant number, whatever casts surround it; None if it is none."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        digits = constant_number(node.this)
        return f"-{digits}" if digits and not digits.startswith("-") else None
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Literal) and not node.is_string and _NUMBER.match(node.this):
        return str(node.this)
    return None


def spark_number(digits: str) -> str:
    """The number as a literal: an integer if it fits in one, else a decimal of just its digits."""
    if "." in digits or abs(int(digits)) >= 2**63:
        return f"({digits}BD)"
    return f"({digits}L)" if abs(int(digits)) >= 2**31 else f"({digits})"


def number_size(digits: str) -> tuple[int, int]:
    """Its digits before and after the point."""
    whole, _, decimals = digits.lstrip("-").partition(".")
    return len(whole), len(decimals)


def _cast(node: exp.Cast) -> str | None:
    inner = node.this.unnest()
    is_text = isinstance(inner, exp.Literal) and inner.is_string and _NUMBER.match(inner.this)
    digits = str(inner.this) if is_text else constant_number(inner)
    if digits is None or node.to.expressions:
        return None
    if node.to.is_type("decimal") or (node.to.is_type(*_WHOLE) and "." not in digits):
        return digits
    return None
