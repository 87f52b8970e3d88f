"""Values: rows that the query itself spells out.

w(row) = how often the query has it, at both ends

Kind: linear. Its rows never change; PostgreSQL evaluates them once.
"""

from __future__ import annotations

from collections.abc import Callable

from pgtrickle.model.names import quoted
from pgtrickle.plan.operators import Operator, Values
from pgtrickle.plan.rules.absent import (
    any_nullable,
    never_unique,
    no_expressions,
    no_groups,
    no_obstacle,
    no_open_children,
    no_reads,
    no_spark_expressions,
    nothing_to_bind,
    nothing_to_prune,
    same_stop,
)
from pgtrickle.plan.rules.kind import Kind
from pgtrickle.plan.rules.provenance import own_columns
from pgtrickle.plan.rules.rule import Rule


def label(op: Values) -> str:
    return f"values {op.query[:60]}"


def postgres_sql(op: Values, lower: Callable[[Operator], str]) -> str:
    if not op.columns:
        return "select"
    names = ", ".join(quoted(c.name) for c in op.columns)
    return f"select * from ({op.query}) as t({names})"


def row_key(op: Values, ask: Callable[[Operator], tuple[str, ...] | None]) -> tuple[str, ...] | None:
    return () if not op.columns else None


RULE = Rule(
    label=label,
    kind=lambda op: Kind.LINEAR,
    bind=nothing_to_bind,
    spark_sql=None,
    obstacle=no_obstacle,
    postgres_sql=postgres_sql,
    places=own_columns,
    open_children=no_open_children,
    held_by=no_reads,
    is_nullable=any_nullable,
    is_unique=never_unique,
    row_key=row_key,
    groups=no_groups,
    prune=nothing_to_prune,
    expressions=no_expressions,
    spark_expressions=no_spark_expressions,
    early_stops=same_stop,
)
