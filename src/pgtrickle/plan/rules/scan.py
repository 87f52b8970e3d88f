"""Scan: the rows of a source that satisfy a condition.

w(row) = how often the source has it, if its condition is true

Kind: linear. A scan becomes reads: the change of its source, and the rows that the needs look up.
Its expressions are evaluated by PostgreSQL, on the rows of the table and on its change alike.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, all_of, raw
from pgtrickle.plan.expressions.nulls import excludes_null
from pgtrickle.plan.operators import Column, Operator, Scan, ScanColumn
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.provenance import own_columns
from pgtrickle.plan.rules.rule import (
    AskKey,
    AskNullable,
    AskUnique,
    LowerToPostgres,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: Scan) -> str:
    where = f" where {op.condition}" if op.condition else ""
    return f"scan {op.source.name} as {op.alias}{where}"


def over_source(op: Scan, expression: Expression) -> str:
    """An expression of a scan as SQL over the alias `t`."""
    return expression.over(lambda name: "t." + quoted(op.source_column(name)))


def postgres_sql(op: Scan, lower: LowerToPostgres) -> str:
    columns = ", ".join(f"{over_source(op, o.expression)} as {quoted(o.column.name)}" for o in op.outputs)
    where = f" where {over_source(op, op.condition)}" if op.condition else ""
    return f"select {columns} from {op.source.table.sql} as t{where}"


def is_nullable(op: Scan, name: str, ask: AskNullable) -> bool:
    expression = op.expression(name)
    given = expression.column
    if given is None:
        return not isinstance(expression.node.unnest(), (exp.Literal, exp.Boolean))
    is_nullable_there = op.source.columns[op.given.index(given)].is_nullable
    return is_nullable_there and not excludes_null(op.condition, given)


def is_unique(op: Scan, names: Set[str], ask: AskUnique) -> bool:
    given = {op.expression(name).column for name in names & op.names}
    known = {op.source_column(name) for name in given if name is not None}
    return any(known.issuperset(key) for key in op.source.keys)


def row_key(op: Scan, ask: AskKey) -> tuple[str, ...] | None:
    given = {c.name: name for c, name in zip(op.source.columns, op.given, strict=True)}
    keys = (tuple(given[name] for name in key) for key in op.source.keys)
    return next((key for key in keys if op.names.issuperset(key)), None)


def prune(op: Scan, names: Names, pruner: Pruner) -> Operator:
    kept = tuple(output for output in op.outputs if output.column.name in names)
    return replace(op, outputs=kept or (_presence(op),))


def _presence(op: Scan) -> ScanColumn:
    """That a row is there, and nothing of it: a column that the query does not name is not captured."""
    name = op.outputs[0].column.name if op.outputs else op.alias
    pg_type = PgType("integer", "integer", "b", "N")
    return ScanColumn(Column(name, pg_type, carrier_of(pg_type)), Expression(raw("1")))


def expressions(op: Scan) -> tuple[Expression, ...]:
    condition = (op.condition,) if op.condition is not None else ()
    return (*(output.expression for output in op.outputs), *condition)


def over_source_columns(op: Scan, expression: Expression) -> Expression:
    """An expression over the scan's columns, over the source's own columns only."""
    return expression.substitute({name: op.expression(name) for name in expression.columns})


def push(op: Scan, condition: Expression, restrict: Restrict) -> Operator:
    old = (op.condition,) if op.condition else ()
    return replace(op, condition=all_of((*old, over_source_columns(op, condition))))


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.LINEAR,
    bind=lambda op, needs, binder: binder.read_scan(op, needs),
    spark_sql=None,
    obstacle=absent.no_obstacle,
    postgres_sql=postgres_sql,
    places=own_columns,
    open_children=absent.no_open_children,
    held_by=absent.no_reads,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=absent.no_groups,
    prune=prune,
    push=push,
    tighten=absent.tighten_nothing,
    expressions=expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
