"""Evaluated: the rows of the child, which PostgreSQL evaluates because Spark would not be exact.

w(row) = w of the child

Once bound it is an answer of PostgreSQL: its rows now, and as they were before the window.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.plan.operators import Evaluated, Operator
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.provenance import FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.rule import AskUnique, Names, Pruner, Rule


def label(op: Evaluated) -> str:
    return f"evaluated by PostgreSQL, because of {op.because}"


def held_by(op: Evaluated, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return find_reads(op.child, columns)


def is_unique(op: Evaluated, names: Set[str], ask: AskUnique) -> bool:
    return ask(op.child, names & op.child.names)


def prune(op: Evaluated, names: Names, pruner: Pruner) -> Operator:
    return replace(op, child=pruner.prune_as_written(op.child, names))


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.KEYED,
    bind=lambda op, needs, binder: binder.read_answer(op, needs),
    spark_sql=None,
    obstacle=absent.no_obstacle,
    postgres_sql=lambda op, lower: lower(op.child),
    places=same_columns,
    open_children=absent.no_open_children,
    held_by=held_by,
    is_nullable=absent.any_nullable,
    is_unique=is_unique,
    row_key=absent.no_row_key,
    groups=absent.no_groups,
    prune=prune,
    push=absent.push_nothing,
    tighten=absent.tighten_nothing,
    expressions=absent.no_expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=lambda op: op.child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
