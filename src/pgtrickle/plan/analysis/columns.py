"""Expressions that become columns: their type from PostgreSQL, their form in Spark."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import require_no_sets
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.lowering.exactness import require_exact, spark_scale
from pgtrickle.plan.operators import Column, Operator, Project
from pgtrickle.plan.refusals import refuse_correlation
from pgtrickle.plan.rules.project import is_extending


def is_exact(expression: Expression, operator: Operator) -> bool:
    """Whether Spark evaluates the expression as PostgreSQL does."""
    try:
        require_exact(expression, operator.columns)
    except UnsupportedQuery:
        return False
    return True


def type_over(context: Context, expression: Expression, operator: Operator) -> PgType:
    """The type of an expression over an operator."""
    if expression.column is not None:
        return operator.column(expression.column).type
    if not operator.columns:
        return context.type("(select) as t", expression.sql)
    return context.type(context.rows_of(operator), over_rows(expression))


def over_rows(expression: Expression) -> str:
    """The expression as SQL over the rows of an operator, as the context writes them."""
    return expression.over(lambda name: "t." + quoted(name))


def result_column(context: Context, wish: str, expression: Expression, operator: Operator) -> Column:
    """The column for an expression over an operator."""
    require_no_sets(expression, context)
    if not expression.columns <= operator.names:
        raise refuse_correlation(f"{expression}, which reads a surrounding query,")
    if expression.column is not None:
        same = operator.column(expression.column)
        return Column(context.unique(wish), same.type, same.carrier)
    pg_type = type_over(context, expression, operator)
    if pg_type.base == "numeric" and is_exact(expression, operator):
        scale = _scale(expression, operator)
        if scale is not None:
            return Column(context.unique(wish), pg_type, decimal(pg_type, scale))
    return Column(context.unique(wish), pg_type, carrier_of(pg_type))


def as_column(operator: Operator, expression: Expression, context: Context) -> tuple[Operator, str]:
    """The operator with the expression among its columns, and the column's name."""
    name = expression.column
    if name is not None and name in operator.names:
        return operator, name
    if not expression.columns <= operator.names:
        raise refuse_correlation(f"{expression}, which reads a surrounding query,")
    pushdown = ScanPushdown(context, operator)
    pushed = pushdown.for_spark(expression)
    if pushed.column is not None:
        return pushdown.operator, pushed.column
    known = _earlier_column(pushdown.operator, pushed)
    if known is not None:
        return pushdown.operator, known
    fresh = result_column(context, str(expression)[:40], pushed, pushdown.operator)
    return extend(pushdown.operator, fresh, pushed), fresh.name


def _earlier_column(operator: Operator, expression: Expression) -> str | None:
    """The column that was added for the same expression before."""
    while isinstance(operator, Project) and is_extending(operator):
        for own, value in zip(operator.columns, operator.expressions, strict=True):
            if value == expression:
                return own.name
        operator = operator.child
    return None


def as_columns(
    operator: Operator, expressions: tuple[Expression, ...], context: Context
) -> tuple[Operator, tuple[str, ...]]:
    """The operator with all expressions among its columns, and the names of these."""
    names = []
    for expression in expressions:
        operator, name = as_column(operator, expression, context)
        names.append(name)
    return operator, tuple(names)


def extend(operator: Operator, fresh: Column, expression: Expression) -> Operator:
    """The operator with one more column."""
    kept = tuple(column(c.name) for c in operator.columns)
    return Project(operator, (*operator.columns, fresh), (*kept, expression))


def with_match(operator: Operator, context: Context) -> tuple[Operator, str]:
    """The operator with a column that is true in each row, and null where a join pads."""
    always = Expression(exp.true())
    fresh = result_column(context, "is_match", always, operator)
    return extend(operator, fresh, always), fresh.name


def _scale(expression: Expression, operator: Operator) -> int | None:
    try:
        return spark_scale(expression, operator.columns)
    except UnsupportedQuery:
        return None
