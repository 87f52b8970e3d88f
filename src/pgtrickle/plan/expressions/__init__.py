"""Scalar expressions: how they are parsed and written, and what their text shows."""

from pgtrickle.plan.expressions.expression import (
    Expression,
    all_of,
    column,
    conjuncts,
    is_null,
    raw,
    readable,
)

__all__ = ["Expression", "all_of", "column", "conjuncts", "is_null", "raw", "readable"]
