"""Rows for the stream table, as each kind of target gives them.

A target turns the rows from Spark into weighted output columns `o1 … on`; groups do it by way of
their state, as final(after) − final(before).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgtrickle.apply.composing import aliased, listed, numbered, trusted
from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.plan.program import Output
from pgtrickle.postgres.connection import sql


@dataclass(frozen=True, slots=True)
class Finals:
    """What a target adds to the statement that writes the stream table.

    `added` and `removed` select `o1 … on, weight`; `steps` are the common table expressions they
    need; `problems` selects a text for each group that cannot be right.
    """

    steps: tuple[sql.Composable, ...]
    added: sql.Composed
    removed: sql.Composed | None
    problems: sql.Composed | None
    parameters: Mapping[str, object]


def step(name: str, query: sql.Composable) -> sql.Composed:
    """One common table expression: PostgreSQL computes it once where several others read it."""
    return sql.SQL("{} as ({})").format(trusted(name), query)


def typed(value: sql.Composable, pg_type: str) -> sql.Composed:
    """The value as a type; written so that a type may bring its collation along."""
    return sql.SQL("({})::{}").format(value, trusted(pg_type))


def outputs_of(
    outputs: Sequence[Output], having: str | None, scope: sql.Composable, weight: sql.Composable
) -> sql.Composed:
    """The output columns and a weight over a scope whose columns have the names that outputs use."""
    values = [typed(trusted(output.sql), output.pg_type) for output in outputs]
    return sql.SQL("select {}, {} as weight from {} where {}").format(
        listed(aliased(values, numbered("o", len(outputs)))), weight, scope, trusted(having or "true")
    )


def restored(fields: Sequence[Field], alias: str) -> list[sql.SQL]:
    """The fields of a carried relation as values of their PostgreSQL types."""
    return [trusted(field.carrier.restore_sql(f"{alias}.{quoted(field.name)}")) for field in fields]
