"""How conditions move below operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Operator, Project
from pgtrickle.plan.rules.rule import Restrict


def restricted_child(
    op: Any, condition: Expression, known: Mapping[str, Expression], restrict: Restrict
) -> Operator | None:
    """The only child under the condition, if each column that it reads is `known` to be the child's."""
    if not all(name in known and known[name].column is not None for name in condition.columns):
        return None
    return restrict(op.child, condition.substitute(known))


def keep_columns(before: Operator, after: Operator) -> Operator:
    """The operator with just the columns it had: a condition may have added some."""
    if after.columns == before.columns:
        return after
    return Project(after, before.columns, tuple(column(c.name) for c in before.columns))
