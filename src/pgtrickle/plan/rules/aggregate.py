"""Aggregate: one row for each combination of keys, with the values of its calls.

w(k, f(G)) = 1   for the group G of rows with key k, if G is not empty
Without keys there is one group, which has its row also over nothing.

Kind: keyed by its keys, whole without any. A change needs all rows of the groups that it touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.aggregates import EXACT, is_zero_over_no_rows
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.nulls import can_be_null
from pgtrickle.plan.lowering.exactness import require_exact, spark_expression, spark_name
from pgtrickle.plan.lowering.spark_text import both_ends, carried_value, folded_sql, names_list
from pgtrickle.plan.operators import Aggregate, Call, Column, Operator
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.groups import bind_whole_groups, incomparable
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.provenance import ColumnPlace, FindPlaces, FindReads, HeldBy, reads_of_first_child
from pgtrickle.plan.rules.pushing import restricted_child
from pgtrickle.plan.rules.rule import (
    AskKey,
    AskNullable,
    AskUnique,
    EarlyStop,
    GroupColumns,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: Aggregate) -> str:
    calls = ", ".join(str(call.expression) for call in op.calls)
    keys = ", ".join(str(key.expression) for key in op.keys)
    return f"aggregate by ({keys}){': ' if calls else ''}{calls}"


def kind(op: Aggregate) -> RuleKind:
    return RuleKind.KEYED if op.keys else RuleKind.WHOLE


def spark_sql(op: Aggregate, needed: Names | None, lower: LowerToSpark) -> str:
    """Groups as they were and as they are."""
    rows, inner = lower(op.child), op.child.columns
    keys = [carried_value(k.expression, k.column, inner) for k in op.keys]
    listed = "".join(f"{sql} as {spark_name(k.column.name)}, " for sql, k in zip(keys, op.keys, strict=True))
    calls = "".join(
        f"{_call_sql(call, inner, end)} as a{number}_{end}, "
        for number, call in enumerate(op.calls)
        for end in (0, 1)
    )
    group = f" group by {', '.join(keys)}" if keys else ""
    source = rows if all(map(_counts_copies, op.calls)) else folded_sql(inner, rows)
    grouped = f"select {listed}{calls}sum(w0) as n0, sum(w1) as n1 from ({source}){group}"
    ends = [[(c.column.name, f"a{n}_{end}") for n, c in enumerate(op.calls)] for end in (0, 1)]
    is_there = ("n0 > 0", "n1 > 0") if keys else ("true", "true")
    made = ", ".join([spark_name(call.column.name) for call in op.calls] + ["w0", "w1"])
    where = " where n0 > 0 or n1 > 0" if keys else ""
    both = both_ends(ends[0], ends[1], *is_there)
    return f"select {names_list(k.column for k in op.keys)}inline({both}) as ({made}) from ({grouped}){where}"


def _counts_copies(call: Call) -> bool:
    return call.function is not None and EXACT[call.function].counts_copies


def _call_sql(call: Call, columns: tuple[Column, ...], end: int) -> str:
    weight = f"w{end}"
    if call.argument is None:
        return f"coalesce(sum({weight}), 0L)"
    assert call.function is not None
    return EXACT[call.function].value(call, spark_expression(call.argument, columns), weight)


def obstacle(op: Aggregate) -> str | None:
    for call in op.calls:
        if call.function is None:
            return str(call.expression)
    for key in op.keys:
        require_exact(key.expression, op.child.columns)
    return incomparable(tuple(key.column for key in op.keys))


def postgres_sql(op: Aggregate, lower: LowerToPostgres) -> str:
    keys = [f"{key.expression.sql} as {quoted(key.column.name)}" for key in op.keys]
    calls = [f"{call.expression.sql} as {quoted(call.column.name)}" for call in op.calls]
    group = ", ".join(str(number + 1) for number in range(len(op.keys)))
    # without keys there is one group, also where nothing is asked of it
    alone = "" if calls else " having true"
    tail = f" group by {group}" if group else alone
    return f"select {', '.join(keys + calls)} from ({lower(op.child)}) as t{tail}"


def places(op: Aggregate) -> FindPlaces:
    given = {key.column.name: key.expression.column for key in op.keys}

    def find(name: str) -> tuple[ColumnPlace, ...]:
        below = given.get(name)
        return () if below is None else (ColumnPlace(0, below),)

    return find


def held_by(op: Aggregate, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    if not op.keys:
        # it has its row also where no read has any
        return None
    return reads_of_first_child(op, columns, places(op), find_reads)


def is_nullable(op: Aggregate, name: str, ask: AskNullable) -> bool:
    known = op.child.names
    for key in op.keys:
        if key.column.name == name:
            return can_be_null(key.expression, lambda below: below not in known or ask(op.child, below))
    own = (call for call in op.calls if call.column.name == name)
    return not any(is_zero_over_no_rows(call.expression.node) for call in own)


def is_unique(op: Aggregate, names: Set[str], ask: AskUnique) -> bool:
    return {key.column.name for key in op.keys} <= names


def row_key(op: Aggregate, ask: AskKey) -> tuple[str, ...]:
    return tuple(key.column.name for key in op.keys)


def groups(op: Aggregate) -> GroupColumns:
    pairs = tuple((k.column.name, k.expression.column) for k in op.keys if k.expression.column is not None)
    return GroupColumns(frozenset(key.column.name for key in op.keys), pairs, is_row=True)


def prune(op: Aggregate, names: Names, pruner: Pruner) -> Operator:
    calls = tuple(call for call in op.calls if call.column.name in names)
    read = _columns(key.expression for key in op.keys)
    read |= _columns(call.argument for call in calls if call.argument is not None)
    read |= _columns(call.expression for call in calls if call.function is None) & op.child.names
    return Aggregate(pruner.prune(op.child, read), op.keys, calls)


def _columns(expressions: Iterable[Expression]) -> Names:
    return frozenset(name for expression in expressions for name in expression.columns)


def expressions(op: Aggregate) -> tuple[Expression, ...]:
    return (*(key.expression for key in op.keys), *(call.expression for call in op.calls))


def early_stops(op: Aggregate, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """It reads everything, unless EXISTS drops a GROUP BY without calls."""
    return (EarlyStop(is_probed=stop.is_probed and not op.calls),)


def push(op: Aggregate, condition: Expression, restrict: Restrict) -> Operator | None:
    """A condition on the keys takes whole groups away, any other one has to wait for the groups."""
    known = {key.column.name: key.expression for key in op.keys}
    child = restricted_child(op, condition, known, restrict)
    return None if child is None else replace(op, child=child)


RULE = Rule(
    label=label,
    kind=kind,
    bind=lambda op, needs, binder: bind_whole_groups(op, needs, binder, places(op)),
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=places,
    open_children=absent.no_open_children,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=groups,
    prune=prune,
    push=push,
    tighten=absent.tighten_nothing,
    expressions=expressions,
    spark_expressions=lambda op: [str(call.expression) for call in op.calls],
    early_stops=early_stops,
    has_one_row=lambda op: not op.keys,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
