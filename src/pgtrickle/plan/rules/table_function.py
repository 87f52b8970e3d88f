"""Table function: each row beside each row that a set-returning call gives for it.

w(row, f) = w(row) · how often the call gives f for the row

Kind: linear. Only PostgreSQL can run the call.
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.bounded_calls import is_bounded
from pgtrickle.plan.operators import Operator, TableFunction
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.linear import bind_child
from pgtrickle.plan.rules.provenance import (
    FIRST_CHILD,
    FindReads,
    HeldBy,
    further_columns,
    reads_of_first_child,
)
from pgtrickle.plan.rules.pushing import restricted_child
from pgtrickle.plan.rules.rule import (
    AskConditions,
    AskNullable,
    LowerToPostgres,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: TableFunction) -> str:
    return f"rows of {op.call}" + (f" where {op.condition}" if op.condition else "")


def obstacle(op: TableFunction) -> str:
    return str(op.call)


def postgres_sql(op: TableFunction, lower: LowerToPostgres) -> str:
    names = ", ".join(quoted(c.name) for c in op.made)
    ordinality = " with ordinality" if op.has_ordinality else ""
    join = "left join lateral" if op.keeps_child else "join lateral"
    on = op.condition.sql if op.condition else "true"
    return f"select * from ({lower(op.child)}) as t {join} {op.call.sql}{ordinality} as f({names}) on {on}"


def held_by(op: TableFunction, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return reads_of_first_child(op, columns, further_columns(op), find_reads)


def is_nullable(op: TableFunction, name: str, ask: AskNullable) -> bool:
    return name not in op.child.names or ask(op.child, name)


def prune(op: TableFunction, names: Names, pruner: Pruner) -> Operator:
    read = names | op.call.columns | (op.condition.columns if op.condition else frozenset())
    return replace(op, child=pruner.prune(op.child, read & op.child.names))


def expressions(op: TableFunction) -> tuple[Expression, ...]:
    return (op.call, op.condition) if op.condition else (op.call,)


def push(op: TableFunction, condition: Expression, restrict: Restrict) -> Operator | None:
    child = restricted_child(op, condition, {name: column(name) for name in op.child.names}, restrict)
    return None if child is None else replace(op, child=child)


def tighten(op: TableFunction, condition: Expression, tighten: Restrict) -> Operator:
    return replace(op, child=tighten(op.child, condition))


def endless_part(op: TableFunction, ask: AskConditions) -> str | None:
    return None if is_bounded(op.call.node) else f"{op.call}, which may never end"


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.LINEAR,
    bind=lambda op, needs, binder: bind_child(op, needs, binder, further_columns(op)),
    spark_sql=None,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=further_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=absent.never_unique,
    row_key=absent.no_row_key,
    groups=absent.no_groups,
    prune=prune,
    push=push,
    tighten=tighten,
    expressions=expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=endless_part,
)
