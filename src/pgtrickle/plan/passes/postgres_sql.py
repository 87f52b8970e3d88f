"""Writes operators as SQL for PostgreSQL: what it evaluates itself, and what it tells us the types of."""

from __future__ import annotations

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.rules import RULES


def postgres_sql(op: Operator) -> str:
    """A SELECT whose columns are the operator's, under their plan names."""
    return RULES[type(op)].postgres_sql(op, postgres_sql)
