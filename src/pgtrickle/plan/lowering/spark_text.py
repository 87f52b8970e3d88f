"""Pieces of Spark SQL from which every relation with two weights is made.

`w0` is how often a row was there before the window, `w1` how often it is there now.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.operators import Column

WEIGHTS = "w0, w1"

ONE_TASK = "/*+ coalesce(1) */"
"""A hint for a union: small windows run in one task, and an exchange would cost a stage."""


def names_list(columns: Iterable[Column], prefix: str = "") -> str:
    """A select list of columns, with a comma after each."""
    return "".join(f"{prefix}{spark_name(column.name)}, " for column in columns)


def typed_nulls(columns: Iterable[Column]) -> str:
    """A select list of nulls in the place of columns, with a comma after each."""
    return "".join(f"cast(null as {c.carrier.spark}) as {spark_name(c.name)}, " for c in columns)


def carried_value(expression: Expression, column: Column, columns: Iterable[Column]) -> str:
    """An expression in the form in which its column travels."""
    sql = spark_expression(expression, columns)
    return sql if expression.column is not None else f"cast({sql} as {column.carrier.spark})"


def folded_sql(columns: Iterable[Column], rows: str) -> str:
    """Rows, each once, with its net weights; what nets to nothing at both ends is gone."""
    listed = names_list(columns)
    group = f" group by {listed[:-2]}" if listed else ""
    return (
        f"select {listed}sum(w0) as w0, sum(w1) as w1 from ({rows}){group}"
        " having sum(w0) <> 0 or sum(w1) <> 0"
    )


def union_sql(arms: Iterable[str]) -> str:
    """The rows of several SELECTs together."""
    listed = list(arms)
    return listed[0] if len(listed) == 1 else f"select {ONE_TASK} * from ({' union all '.join(listed)})"


def both_ends(before: list[tuple[str, str]], now: list[tuple[str, str]], is_before: str, is_now: str) -> str:
    """An array of structs: the row as it was and as it is, or one with both weights if it stayed.

    Values are (name, SQL) at each end; the last two fields of each struct are the weights.
    """
    same = " and ".join(f"({a} <=> {b})" for (_, a), (_, b) in zip(before, now, strict=True)) or "true"
    old, new = _struct(before, "1L", "0L"), _struct(now, "0L", "1L")
    return (
        f"case when {is_before} and {is_now} and {same} then array({_struct(now, '1L', '1L')})"
        f" when {is_before} and {is_now} then array({old}, {new})"
        f" when {is_now} then array({new}) else array({old}) end"
    )


def _struct(values: list[tuple[str, str]], w0: str, w1: str) -> str:
    parts = "".join(f"{sql} as {spark_name(name)}, " for name, sql in values)
    return f"struct({parts}{w0} as w0, {w1} as w1)"
