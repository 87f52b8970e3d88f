"""Distinct: each row that the child has, once.

w(row) = 1 if w of the child > 0, else 0

Kind: keyed by the whole row. A change needs all copies of the rows that it touches.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.spark_text import names_list
from pgtrickle.plan.operators import Distinct, Operator
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.groups import bind_whole_groups, incomparable
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.positions import prune_nothing_off
from pgtrickle.plan.rules.provenance import FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.pushing import keep_columns
from pgtrickle.plan.rules.rule import (
    AskKey,
    AskUnique,
    EarlyStop,
    GroupColumns,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Restrict,
    Rule,
)


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


def postgres_sql(op: Distinct, lower: LowerToPostgres) -> str:
    return f"select distinct * from ({lower(op.child)}) as t"


def held_by(op: Distinct, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return find_reads(op.child, columns)


def is_unique(op: Distinct, names: Set[str], ask: AskUnique) -> bool:
    return op.names <= names


def row_key(op: Distinct, ask: AskKey) -> tuple[str, ...]:
    return tuple(c.name for c in op.columns)


def groups(op: Distinct) -> GroupColumns:
    return GroupColumns(op.names, tuple((c.name, c.name) for c in op.columns), is_row=True)


def early_stops(op: Distinct, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """It reads everything, unless EXISTS drops it."""
    return (replace(stop, is_cut=False),)


def push(op: Distinct, condition: Expression, restrict: Restrict) -> Operator:
    return Distinct(keep_columns(op.child, restrict(op.child, condition)))


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.KEYED,
    bind=lambda op, needs, binder: bind_whole_groups(op, needs, binder, same_columns(op)),
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=absent.no_open_children,
    held_by=held_by,
    is_nullable=absent.same_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=groups,
    prune=prune_nothing_off,
    push=push,
    tighten=absent.tighten_nothing,
    expressions=absent.no_expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=early_stops,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
