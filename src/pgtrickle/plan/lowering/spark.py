"""Operators over reads as Spark SQL: every relation has its columns and a weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.operators import (
    Aggregate,
    Call,
    Column,
    Distinct,
    Filter,
    Input,
    Join,
    Negate,
    Operator,
    Project,
    SemiJoin,
    UnionAll,
)
from pgtrickle.plan.program import WEIGHT, ReadKind


def spark_sql(op: Operator) -> str:
    """A SELECT of the operator's columns, under their plan names, and the weight."""
    return _LOWERINGS[type(op)](op)


def names(columns: Iterable[Column], prefix: str = "") -> str:
    """A select list of columns, with a comma after each."""
    return "".join(f"{prefix}{spark_name(column.name)}, " for column in columns)


def value(expression: Expression, column: Column, columns: Iterable[Column]) -> str:
    """An expression in the form in which its column travels."""
    sql = spark_expression(expression, columns)
    return sql if expression.column is not None else f"cast({sql} as {column.carrier.spark})"


def folded(op: Operator) -> str:
    """The rows of an operator, each once, with its net weight; what nets to zero is gone."""
    listed = names(op.columns)
    group = f" group by {listed[:-2]}" if listed else ""
    return f"select {listed}sum({WEIGHT}) as {WEIGHT} from ({spark_sql(op)}){group} having sum({WEIGHT}) <> 0"


def _input(op: Input) -> str:
    weight = WEIGHT if op.read.kind is ReadKind.CHANGES else f"1L as {WEIGHT}"
    return f"select {names(op.columns)}{weight} from {op.read.name}"


def _filter(op: Filter) -> str:
    condition = spark_expression(op.condition, op.child.columns)
    return f"select * from ({spark_sql(op.child)}) where {condition}"


def _project(op: Project) -> str:
    listed = [
        f"{value(e, c, op.child.columns)} as {spark_name(c.name)}, "
        for c, e in zip(op.columns, op.expressions, strict=True)
    ]
    return f"select {''.join(listed)}{WEIGHT} from ({spark_sql(op.child)})"


def _join(op: Join) -> str:
    conditions = [f"l.{spark_name(left)} = r.{spark_name(right)}" for left, right in op.on]
    if op.condition:
        conditions.append(spark_expression(op.condition, op.columns))
    columns = names(op.left.columns, "l.") + names(op.right.columns, "r.")
    on = " and ".join(conditions) or "true"
    return (
        f"select {columns}l.{WEIGHT} * r.{WEIGHT} as {WEIGHT}"
        f" from ({spark_sql(op.left)}) l join ({spark_sql(op.right)}) r on {on}"
    )


def _union_all(op: UnionAll) -> str:
    return " union all ".join(
        f"select {_renamed(arm, op)}{WEIGHT} from ({spark_sql(arm)})" for arm in op.arms
    )


def _renamed(arm: Operator, union: UnionAll) -> str:
    pairs = zip(arm.columns, union.columns, strict=True)
    return "".join(f"{spark_name(own.name)} as {spark_name(ours.name)}, " for own, ours in pairs)


def _negate(op: Negate) -> str:
    return f"select {names(op.columns)}-{WEIGHT} as {WEIGHT} from ({spark_sql(op.child)})"


def _semijoin(op: SemiJoin) -> str:
    conditions = [
        f"{_qualified('x', on, op.child.columns)} <=> k.{spark_name(key.name)}"
        for on, key in zip(op.on, op.keys.columns, strict=False)
    ]
    listed = names(op.keys.columns)[:-2] if op.on else "1 as one"
    keys = f"select distinct {listed} from ({spark_sql(op.keys)})"
    return (
        f"select x.* from ({spark_sql(op.child)}) x left semi join ({keys}) k"
        f" on {' and '.join(conditions) or 'true'}"
    )


def _qualified(alias: str, expression: Expression, columns: Iterable[Column]) -> str:
    if expression.column is not None:
        return f"{alias}.{spark_name(expression.column)}"
    return spark_expression(expression, columns)


def _distinct(op: Distinct) -> str:
    listed = names(op.columns)
    group = f" group by {listed[:-2]}"
    return f"select {listed}1L as {WEIGHT} from ({spark_sql(op.child)}){group} having sum({WEIGHT}) > 0"


def _aggregate(op: Aggregate) -> str:
    inner = op.child.columns
    keys = [f"{value(k.expression, k.column, inner)} as {spark_name(k.column.name)}, " for k in op.keys]
    calls = [f"{_call(call, inner)} as {spark_name(call.column.name)}, " for call in op.calls]
    group = ", ".join(value(k.expression, k.column, inner) for k in op.keys)
    tail = f" group by {group}" if group else ""
    return f"select {''.join(keys + calls)}1L as {WEIGHT} from ({folded(op.child)}){tail}"


def _call(call: Call, columns: tuple[Column, ...]) -> str:
    if call.function == "count" and call.argument is None:
        return f"coalesce(sum({WEIGHT}), 0L)"
    assert call.function is not None
    assert call.argument is not None
    operand = spark_expression(call.argument, columns)
    if call.function == "count":
        return f"coalesce(sum(case when {operand} then {WEIGHT} else 0L end), 0L)"
    if call.function == "sum":
        return f"sum(cast({operand} as {call.column.carrier.spark}) * {WEIGHT})"
    return f"{call.function}({operand})"


_LOWERINGS: Mapping[type[Operator], Callable[[Any], str]] = {
    Input: _input,
    Filter: _filter,
    Project: _project,
    Join: _join,
    UnionAll: _union_all,
    Negate: _negate,
    SemiJoin: _semijoin,
    Distinct: _distinct,
    Aggregate: _aggregate,
}
