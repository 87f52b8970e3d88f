"""The rows that each kind of target adds to the stream table and removes from it.

A target turns the rows from Spark into weighted output columns `o1 … on`. Groups do so through their
state: final(after) − final(before).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgtrickle.apply.compose import comma_list, numbered_names, trusted_sql, with_aliases
from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.plan.program import Output
from pgtrickle.postgres.connection import sql


@dataclass(frozen=True, slots=True)
class Finals:
    """The part of the writing statement that depends on the target.

    `added` and `removed` select `o1 … on, weight`; `steps` are the common table expressions they need;
    `problems` selects a text for each group that cannot be right.
    """

    steps: tuple[sql.Composable, ...]
    added: sql.Composed
    removed: sql.Composed | None
    problems: sql.Composed | None
    parameters: Mapping[str, object]

    @property
    def change(self) -> sql.Composed:
        """What is added and what is removed, as one query."""
        if self.removed is None:
            return self.added
        return sql.SQL("{} union all {}").format(self.added, self.removed)


def cte(name: str, query: sql.Composable) -> sql.Composed:
    """A common table expression; PostgreSQL computes it once if several others read it."""
    return sql.SQL("{} as ({})").format(trusted_sql(name), query)


def cast_value(value: sql.Composable, pg_type: str) -> sql.Composed:
    """A cast that allows a type with a collation."""
    return sql.SQL("({})::{}").format(value, trusted_sql(pg_type))


def outputs_of(
    outputs: Sequence[Output], having: str | None, scope: sql.Composable, weight: sql.Composable
) -> sql.Composed:
    """The output columns and a weight, over a scope that has the columns which the outputs name."""
    values = [cast_value(trusted_sql(output.sql), output.pg_type) for output in outputs]
    return sql.SQL("select {}, {} as weight from {} where {}").format(
        comma_list(with_aliases(values, numbered_names("o", len(outputs)))),
        weight,
        scope,
        trusted_sql(having or "true"),
    )


def restored_values(fields: Sequence[Field], alias: str) -> list[sql.SQL]:
    """The fields of a carried relation, converted back to their PostgreSQL types."""
    return [trusted_sql(field.carrier.restore_sql(f"{alias}.{quoted(field.name)}")) for field in fields]
