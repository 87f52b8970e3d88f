"""The column that an expression becomes: its type from PostgreSQL, its form in Spark."""

from __future__ import annotations

from pgtrickle.model.names import quoted
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import require_exact, spark_scale
from pgtrickle.plan.lowering.postgres import postgres_sql
from pgtrickle.plan.operators import Column, Operator


def result_column(context: Context, wish: str, expression: Expression, operator: Operator) -> Column:
    """The column for an expression over an operator; refused if Spark cannot evaluate it."""
    if expression.column is not None:
        same = operator.column(expression.column)
        return Column(context.unique(wish), same.type, same.carrier)
    require_exact(expression, operator.columns)
    rows = f"({postgres_sql(operator)}) as t"
    (pg_type,) = context.typer(rows, [expression.over(lambda name: "t." + quoted(name))])
    if pg_type.base == "numeric":
        return Column(
            context.unique(wish), pg_type, decimal(pg_type, spark_scale(expression, operator.columns))
        )
    return Column(context.unique(wish), pg_type, carrier_of(pg_type))
