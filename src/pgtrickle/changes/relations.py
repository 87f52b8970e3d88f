"""What a read selects from: a source, or its window of changes."""

from __future__ import annotations

from collections.abc import Callable

from pgtrickle.changes.keys import ALWAYS, trusted
from pgtrickle.changes.window import buffers, within
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source
from pgtrickle.plan.program import Read
from pgtrickle.postgres.connection import sql

CHANGE = sql.Identifier("weight of the change")
"""A name that no column of a source is likely to have: a source may have a column `weight`."""

Frontiers = Callable[[Source], Frontier]


def carried(read: Read) -> sql.Composed:
    """The select list of a read, each value in the form in which it travels."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(trusted(field.carrier.carried(expression)), sql.Identifier(field.name))
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def native(read: Read) -> sql.Composed:
    """The select list of a read, each value as PostgreSQL has it."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(trusted(expression), sql.Identifier(field.name))
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def window(read: Read, since: Frontiers) -> sql.Composed:
    """The change rows of a source under its own column names, both buffers together."""
    assert read.source is not None
    used = [column for column in read.source.columns if column.name in read.uses]
    columns = [
        sql.SQL("{} as {}").format(sql.Identifier(f"c{column.number}"), sql.Identifier(column.name))
        for column in used
    ]
    arms = [
        sql.SQL("select {} from {} where {}").format(
            sql.SQL(", ").join([*columns, sql.SQL("weight as {}").format(CHANGE)]),
            sql.Identifier(b.schema, b.name),
            within(since(read.source)),
        )
        for b in buffers(read.source.relation)
    ]
    return sql.SQL(" union all ").join(arms)


def where(read: Read, conditions: list[sql.Composable]) -> sql.Composable:
    """The condition of the read's scan, and these."""
    own: list[sql.Composable] = [sql.SQL("({})").format(trusted(read.condition))] if read.condition else []
    parts = own + [condition for condition in conditions if condition is not ALWAYS]
    return sql.SQL(" where {}").format(sql.SQL(" and ").join(parts)) if parts else sql.SQL("")
