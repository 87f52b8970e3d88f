"""Evaluated: the rows of the child, which PostgreSQL evaluates because Spark would not be exact.

w(row) = w of the child

Once bound it is an answer of PostgreSQL: its rows now, and as they were before the window.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from pgtrickle.plan.operators import Evaluated, Operator
from pgtrickle.plan.rules.absent import (
    any_nullable,
    no_expressions,
    no_groups,
    no_obstacle,
    no_open_children,
    no_row_key,
    no_spark_expressions,
    nothing_to_bind,
    same_stop,
)
from pgtrickle.plan.rules.kind import Kind
from pgtrickle.plan.rules.provenance import FindReads, Holding, same_columns
from pgtrickle.plan.rules.rule import Names, Pruner, Rule


def label(op: Evaluated) -> str:
    return f"evaluated by PostgreSQL, because of {op.because}"


def held_by(op: Evaluated, columns: tuple[str, ...], find_reads: FindReads) -> Holding:
    return find_reads(op.child, columns)


def is_unique(op: Evaluated, names: Set[str], ask: Callable[[Operator, Set[str]], bool]) -> bool:
    return ask(op.child, names & op.child.names)


def prune(op: Evaluated, names: Names, pruner: Pruner) -> Operator:
    return replace(op, child=pruner.prune_as_written(op.child, names))


RULE = Rule(
    label=label,
    kind=lambda op: Kind.KEYED,
    bind=nothing_to_bind,
    spark_sql=None,
    obstacle=no_obstacle,
    postgres_sql=lambda op, lower: lower(op.child),
    places=same_columns,
    open_children=no_open_children,
    held_by=held_by,
    is_nullable=any_nullable,
    is_unique=is_unique,
    row_key=no_row_key,
    groups=no_groups,
    prune=prune,
    expressions=no_expressions,
    spark_expressions=no_spark_expressions,
    early_stops=same_stop,
)
