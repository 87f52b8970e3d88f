"""Filter: the rows whose condition is true.

w(row) = w of the child, if the condition is true of the row, else 0

Kind: linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from pgtrickle.plan.expressions import Expression, conjuncts
from pgtrickle.plan.expressions.nulls import excludes_null
from pgtrickle.plan.lowering.exactness import require_exact
from pgtrickle.plan.operators import Filter, Operator
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.linear import bind_child
from pgtrickle.plan.rules.needs import Binder, Needs
from pgtrickle.plan.rules.provenance import FIRST_CHILD, FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.region import region_sql
from pgtrickle.plan.rules.rule import (
    AskConditions,
    AskNullable,
    AskUnique,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: Filter) -> str:
    return f"filter {op.condition}"


def bind(op: Filter, needs: Needs, binder: Binder) -> Operator:
    """As one with the inner joins below it; otherwise its child for what is needed of it."""
    if binder.is_region(op):
        return binder.bind_region(op, needs)
    return bind_child(op, needs, binder, same_columns(op))


def spark_sql(op: Filter, needed: Names | None, lower: LowerToSpark) -> str:
    return region_sql(op, op.names if needed is None else needed, lower)


def obstacle(op: Filter) -> None:
    require_exact(op.condition, op.child.columns)


def postgres_sql(op: Filter, lower: LowerToPostgres) -> str:
    return f"select * from ({lower(op.child)}) as t where {op.condition.sql}"


def held_by(op: Filter, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return find_reads(op.child, columns)


def is_nullable(op: Filter, name: str, ask: AskNullable) -> bool:
    return not excludes_null(op.condition, name) and ask(op.child, name)


def is_unique(op: Filter, names: Set[str], ask: AskUnique) -> bool:
    return ask(op.child, names & op.child.names)


def prune(op: Filter, names: Names, pruner: Pruner) -> Operator:
    return replace(op, child=pruner.prune(op.child, names | op.condition.columns))


def expressions(op: Filter) -> tuple[Expression, ...]:
    return (op.condition,)


def spark_expressions(op: Filter) -> tuple[str, ...]:
    return (str(op.condition),)


def push(op: Filter, condition: Expression, restrict: Restrict) -> Operator:
    return replace(op, child=restrict(op.child, condition))


def tighten(op: Filter, condition: Expression, tighten: Restrict) -> Operator:
    return replace(op, child=tighten(op.child, condition))


def conditions(op: Filter, ask: AskConditions) -> Iterator[Expression]:
    yield from conjuncts(op.condition)
    yield from ask(op.child)


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.LINEAR,
    bind=bind,
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=absent.same_row_key,
    groups=absent.no_groups,
    prune=prune,
    push=push,
    tighten=tighten,
    expressions=expressions,
    spark_expressions=spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=lambda op: op.child,
    widened_child=absent.no_widened_child,
    conditions=conditions,
    endless_part=absent.no_endless_part,
)
