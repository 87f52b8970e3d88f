"""Window: each row with values computed from the rows of its partition.

w(row, f(P)) = w(row)   for the partition P of the row

Kind: keyed by its partition, whole without one. A change needs all rows of the partitions that it touches.
PostgreSQL evaluates it: frames and peers follow its own order of values.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Operator, Window
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.partitions import bind_whole_partitions, groups_by
from pgtrickle.plan.rules.provenance import (
    FIRST_CHILD,
    FindReads,
    HeldBy,
    further_columns,
    reads_of_first_child,
)
from pgtrickle.plan.rules.pushing import restricted_child
from pgtrickle.plan.rules.rule import (
    READ_TO_THE_END,
    AskNullable,
    AskUnique,
    EarlyStop,
    LowerToPostgres,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: Window) -> str:
    calls = ", ".join(str(call.expression) for call in op.calls)
    return f"window by ({', '.join(op.partition)}): {calls}"


def kind(op: Window) -> RuleKind:
    return RuleKind.KEYED if op.partition else RuleKind.WHOLE


def obstacle(op: Window) -> str:
    return str(op.calls[0].expression) if op.calls else "a window function"


def postgres_sql(op: Window, lower: LowerToPostgres) -> str:
    calls = "".join(f", {call.expression.sql} as {quoted(call.column.name)}" for call in op.calls)
    return f"select *{calls} from ({lower(op.child)}) as t"


def held_by(op: Window, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return reads_of_first_child(op, columns, further_columns(op), find_reads)


def is_nullable(op: Window, name: str, ask: AskNullable) -> bool:
    return name not in op.child.names or ask(op.child, name)


def is_unique(op: Window, names: Set[str], ask: AskUnique) -> bool:
    return ask(op.child, names & op.child.names)


def prune(op: Window, names: Names, pruner: Pruner) -> Operator:
    calls = tuple(call for call in op.calls if call.column.name in names)
    if not calls:
        return pruner.prune(op.child, names)
    computed = frozenset(name for call in calls for name in call.expression.columns)
    read = (names & op.child.names) | set(op.partition) | computed
    return replace(op, child=pruner.prune(op.child, read), calls=calls)


def expressions(op: Window) -> tuple[Expression, ...]:
    return tuple(call.expression for call in op.calls)


def early_stops(op: Window, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """A partition is read to its end, whatever is read of the result."""
    return (READ_TO_THE_END,)


def push(op: Window, condition: Expression, restrict: Restrict) -> Operator | None:
    """A condition on the partition takes whole partitions away, any other one would change the rest."""
    child = restricted_child(op, condition, {name: column(name) for name in op.partition}, restrict)
    return None if child is None else replace(op, child=child)


RULE = Rule(
    label=label,
    kind=kind,
    bind=lambda op, needs, binder: bind_whole_partitions(
        op, op.partition, needs, binder, further_columns(op)
    ),
    spark_sql=None,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=further_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=absent.same_row_key,
    groups=lambda op: groups_by(op.partition),
    prune=prune,
    push=push,
    tighten=absent.tighten_nothing,
    expressions=expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=early_stops,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
