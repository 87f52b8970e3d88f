"""What a read selects from: a source, or its window of changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from pgtrickle.changes.keys import ALWAYS, trusted
from pgtrickle.changes.window import buffers, within
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceColumn
from pgtrickle.plan.expressions.clock import CLOCK
from pgtrickle.plan.reads import Read
from pgtrickle.postgres.connection import sql

CHANGE = sql.Identifier("weight of the change")
"""A name that no column of a source is likely to have: a source may have a column `weight`."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The two ends of a window: each source's old frontier, and the clock then and now."""

    frontier: Callable[[Source], Frontier]
    before: datetime | None
    now: datetime


def carried(read: Read) -> sql.Composed:
    """The select list of a read, each value in the form in which it travels."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(trusted(field.carrier.carry_sql(expression)), sql.Identifier(field.name))
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def native(read: Read) -> sql.Composed:
    """The select list of a read, each value as PostgreSQL has it."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(trusted(expression), sql.Identifier(field.name))
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def window(read: Read, ends: Ends) -> sql.Composed:
    """The change rows that satisfy the read's condition, under the source's own column names."""
    moved = sql.SQL("select * from ({}) as t{}").format(
        captured(read, ends, read.uses), where(read, [], ends.before)
    )
    if not read.follows_clock:
        return moved
    return sql.SQL(" union all ").join([moved, *_crossed(read, ends)])


def _crossed(read: Read, ends: Ends) -> list[sql.Composed]:
    """Rows that the clock alone lets in or out: the condition holds at one end only.

    Δ(σ T) = σ@now T − σ@before T + σ@before ΔT
    """
    assert read.source is not None
    assert read.condition is not None
    used = [sql.Identifier(column.name) for column in read.source.columns if column.name in read.uses]
    then, now = (_timed(read.condition, clock) for clock in (ends.before, ends.now))
    table = sql.Identifier(read.source.table.schema, read.source.table.name)
    return [
        sql.SQL("select {}, {} as {} from {} as t where ({}) and not coalesce({}, false)").format(
            sql.SQL(", ").join(used), sql.Literal(weight), CHANGE, table, holds, other
        )
        for weight, holds, other in ((1, now, then), (-1, then, now))
    ]


def _timed(condition: str, clock: datetime | None) -> sql.SQL:
    """The condition with the time in the place of the clock's sign."""
    moment = "null" if clock is None else f"'{clock.isoformat()}'::timestamptz"
    return trusted(condition.replace(CLOCK, moment))


def captured(read: Read, ends: Ends, uses: Collection[str]) -> sql.Composed:
    """The change rows of a read's source under its own column names, both buffers together."""
    assert read.source is not None
    used = [column for column in read.source.columns if column.name in uses]
    columns = [
        sql.SQL("{} as {}").format(_declared(read.source, column), sql.Identifier(column.name))
        for column in used
    ]
    arms = [
        sql.SQL("select {} from {} where {}").format(
            sql.SQL(", ").join([*columns, sql.SQL("weight as {}").format(CHANGE)]),
            sql.Identifier(b.schema, b.name),
            within(ends.frontier(read.source)),
        )
        for b in buffers(read.source.relation)
    ]
    return sql.SQL(" union all ").join(arms)


def _declared(source: Source, column: SourceColumn) -> sql.Composable:
    """A column of a change row as the source declares it.

    Buffers keep what lies below a domain. Which function is meant may depend on the domain, so it is given
    back; a null is not cast, because a domain that allows none would refuse the row of a TRUNCATE.
    """
    value = sql.Identifier(f"c{column.number}")
    if column.type.domain is None or source.copy:
        return value
    return sql.SQL(
        "case when {value} is not distinct from null then (null::{table}).{name} else {value}::{domain} end"
    ).format(
        value=value,
        table=sql.Identifier(source.name.schema, source.name.name),
        name=sql.Identifier(column.name),
        domain=trusted(column.type.domain),
    )


def where(read: Read, conditions: list[sql.Composable], clock: datetime | None) -> sql.Composable:
    """The condition of the read's scan at a time, and these."""
    own: list[sql.Composable] = []
    if read.condition:
        own.append(sql.SQL("({})").format(_timed(read.condition, clock)))
    return among([*own, *conditions])


def among(conditions: list[sql.Composable]) -> sql.Composable:
    """The WHERE clause of conditions that must all hold."""
    parts = [condition for condition in conditions if condition is not ALWAYS]
    return sql.SQL(" where {}").format(sql.SQL(" and ").join(parts)) if parts else sql.SQL("")
