"""Operators over reads as Spark SQL: every relation has its columns and two weights.

`w0` is how often a row was there before the window, `w1` how often it is there now. One pass over
the restricted rows gives both ends of the window, and the change is their difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.lowering.spark_groups import aggregate, distinct, set_operation, single
from pgtrickle.plan.lowering.spark_joins import join_condition, mark, outer_join, region
from pgtrickle.plan.lowering.spark_text import WEIGHTS, names, union, value
from pgtrickle.plan.operators import (
    Aggregate,
    Answer,
    Distinct,
    Filter,
    Join,
    Leaf,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    SetOperation,
    Single,
    UnionAll,
)
from pgtrickle.plan.reads import WEIGHT, Input, Role


def spark_sql(op: Operator, needed: frozenset[str] | None = None) -> str:
    """A SELECT of the operator's columns, under their plan names, and the two weights.

    Where only some columns are needed, joins leave out the others.
    """
    if isinstance(op, (Join, Filter)) and needed is not None:
        return _region(op, needed)
    return _LOWERINGS[type(op)](op)


class End(Enum):
    """What of the two weights a result is about."""

    CHANGE = "w1 - w0"
    NOW = "w1"


def change_sql(op: Operator, end: End = End.CHANGE) -> str:
    """The change of an operator's rows, each once, with its net weight; what nets to zero is gone."""
    listed = names(op.columns)
    group = f" group by {listed[:-2]}" if listed else ""
    net = f"sum({end.value})"
    return f"select {listed}{net} as {WEIGHT} from ({spark_sql(op)}){group} having {net} <> 0"


def input_sql(one: Input) -> str:
    """An input over views named like its reads."""
    fields = "".join(f"{spark_name(field.name)}, " for field in one.fields)
    return " union all ".join(f"select {fields}{_ROLES[role]} from {name}" for name, role in one.reads)


_ROLES = {
    Role.CHANGE: f"greatest(-{WEIGHT}, 0L) as w0, greatest({WEIGHT}, 0L) as w1",
    Role.BOTH: f"{WEIGHT} as w0, {WEIGHT} as w1",
    Role.ONCE: "1L as w0, 1L as w1",
    Role.NOW: "0L as w0, 1L as w1",
    Role.BEFORE: "1L as w0, 0L as w1",
}


def _input(op: Leaf | Answer) -> str:
    return f"select {names(op.columns)}{WEIGHTS} from {op.input.name}"


def _nothing(op: Nothing) -> str:
    nulls = "".join(f"cast(null as {c.carrier.spark}) as {spark_name(c.name)}, " for c in op.columns)
    return f"select {nulls}0L as w0, 0L as w1 where false"


def _region(op: Join | Filter, needed: frozenset[str]) -> str:
    """Inner joins and the filters between them, as one SELECT."""
    columns = [c for c in op.columns if c.name in needed]
    parts: list[tuple[str, str]] = []
    conditions: list[str] = []
    read = needed | _read_by(op)
    _flatten(op, "", read, parts, conditions)
    return region(parts, columns, conditions)


def _flatten(
    op: Operator, on: str, read: frozenset[str], parts: list[tuple[str, str]], conditions: list[str]
) -> None:
    """Collect the relations of a region in order; `on` ties the first of them to those before it."""
    if isinstance(op, Filter):
        _flatten(op.child, on, read, parts, conditions)
        conditions.append(spark_expression(op.condition, op.child.columns))
    elif isinstance(op, Join) and not on:
        _flatten(op.left, "", read, parts, conditions)
        _flatten(op.right, join_condition(op, len(parts)), read, parts, conditions)
    elif isinstance(op, (Leaf, Answer)):
        parts.append((op.input.name, on))
    else:
        parts.append((f"({spark_sql(op, read & op.names)})", on))


def _read_by(op: Operator) -> frozenset[str]:
    """The columns that the conditions of a region read."""
    if isinstance(op, Filter):
        return op.condition.columns | _read_by(op.child)
    if isinstance(op, Join):
        own = {name for pair in op.on for name in pair} | (op.condition.columns if op.condition else set())
        return frozenset(own) | _read_by(op.left) | _read_by(op.right)
    return frozenset()


def _project(op: Project) -> str:
    listed = [_output(op, e, position) for position, e in enumerate(op.expressions)]
    read = frozenset(name for expression in op.expressions for name in expression.columns)
    return f"select {''.join(listed)}{WEIGHTS} from ({spark_sql(op.child, read)})"


def _output(op: Project, expression: Expression, position: int) -> str:
    column = op.columns[position]
    return f"{value(expression, column, op.child.columns)} as {spark_name(column.name)}, "


def _union_all(op: UnionAll) -> str:
    arms = [arm for arm in op.arms if not isinstance(arm, Nothing)] or [op.arms[0]]
    return union(f"select {_renamed(arm, op)}{WEIGHTS} from ({spark_sql(arm)})" for arm in arms)


def _renamed(arm: Operator, union: UnionAll) -> str:
    pairs = zip(arm.columns, union.columns, strict=True)
    return "".join(f"{spark_name(own.name)} as {spark_name(ours.name)}, " for own, ours in pairs)


def _outer_join(op: OuterJoin) -> str:
    return outer_join(op, spark_sql(op.left), spark_sql(op.right))


def _mark(op: Mark) -> str:
    return mark(op, spark_sql(op.left), spark_sql(op.right))


def _aggregate(op: Aggregate) -> str:
    return aggregate(op, spark_sql(op.child))


def _distinct(op: Distinct) -> str:
    return distinct(op, spark_sql(op.child))


def _set_operation(op: SetOperation) -> str:
    return set_operation(op, spark_sql(op.left), spark_sql(op.right))


def _single(op: Single) -> str:
    return single(op, spark_sql(op.child))


_LOWERINGS: Mapping[type[Operator], Callable[[Any], str]] = {
    Aggregate: _aggregate,
    Answer: _input,
    Distinct: _distinct,
    Filter: lambda op: _region(op, op.names),
    Join: lambda op: _region(op, op.names),
    Leaf: _input,
    Mark: _mark,
    Nothing: _nothing,
    OuterJoin: _outer_join,
    Project: _project,
    SetOperation: _set_operation,
    Single: _single,
    UnionAll: _union_all,
}

__all__ = ["End", "change_sql", "input_sql", "names", "spark_sql", "value"]
