"""Distinct: each row that the child has, once.

w(row) = 1 if w of the child > 0, else 0

Kind: keyed by the whole row. A change needs all copies of the rows that it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from pgtrickle.plan.lowering.spark_text import names_list
from pgtrickle.plan.operators import Distinct, Operator
from pgtrickle.plan.rules.absent import (
    no_expressions,
    no_open_children,
    no_spark_expressions,
    same_nullable,
)
from pgtrickle.plan.rules.groups import bind_whole_groups, incomparable
from pgtrickle.plan.rules.kind import Kind
from pgtrickle.plan.rules.positions import prune_nothing_off
from pgtrickle.plan.rules.provenance import FindReads, Holding, same_columns
from pgtrickle.plan.rules.rule import EarlyStop, Groups, LowerToSpark, Names, Rule


def label(op: Distinct) -> str:
    return "distinct"


def spark_sql(op: Distinct, needed: Names | None, lower: LowerToSpark) -> str:
    """Each row once, at the ends at which it is there."""
    listed = names_list(op.columns)
    return (
        f"select {listed}if(sum(w0) > 0, 1L, 0L) as w0, if(sum(w1) > 0, 1L, 0L) as w1"
        f" from ({lower(op.child)}) group by {listed[:-2]}"
    )


def obstacle(op: Distinct) -> str | None:
    return incomparable(op.columns)


def postgres_sql(op: Distinct, lower: Callable[[Operator], str]) -> str:
    return f"select distinct * from ({lower(op.child)}) as t"


def held_by(op: Distinct, columns: tuple[str, ...], find_reads: FindReads) -> Holding:
    return find_reads(op.child, columns)


def is_unique(op: Distinct, names: Set[str], ask: Callable[[Operator, Set[str]], bool]) -> bool:
    return op.names <= names


def row_key(op: Distinct, ask: Callable[[Operator], tuple[str, ...] | None]) -> tuple[str, ...]:
    return tuple(c.name for c in op.columns)


def groups(op: Distinct) -> Groups:
    return Groups(op.names, tuple((c.name, c.name) for c in op.columns))


def early_stops(op: Distinct, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """It reads everything, unless EXISTS drops it."""
    return (replace(stop, is_cut=False),)


RULE = Rule(
    label=label,
    kind=lambda op: Kind.KEYED,
    bind=lambda op, needs, binder: bind_whole_groups(op, needs, binder, same_columns(op)),
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=no_open_children,
    held_by=held_by,
    is_nullable=same_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=groups,
    prune=prune_nothing_off,
    expressions=no_expressions,
    spark_expressions=no_spark_expressions,
    early_stops=early_stops,
)
