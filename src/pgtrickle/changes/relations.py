"""What a read selects from: a source, or its window of changes, with the clock at either end."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from pgtrickle.changes.keys import ALWAYS, trusted_sql
from pgtrickle.changes.source_window import Decoded, change_rows
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import STORED, Source, SourceColumn
from pgtrickle.plan.expressions.clock import CLOCK
from pgtrickle.plan.reads import Read
from pgtrickle.postgres.connection import sql


def change_column(*texts: str) -> sql.Identifier:
    """The name of the column that holds the weights of changes: one that occurs in none of these texts."""
    name = "weight of the change"
    while any(name in text for text in texts):
        name += "'"
    return sql.Identifier(name)


def change_of(source: Source) -> sql.Identifier:
    """The name of that column beside the columns of a source."""
    return change_column(*(column.name for column in source.columns))


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The stream table itself, and the SQL by which its index hashes each of its columns."""

    name: RelationName
    match_columns: tuple[str, ...]

    @property
    def table(self) -> sql.Identifier:
        """Its name in a statement."""
        return sql.Identifier(self.name.schema, self.name.name)


@dataclass(frozen=True, slots=True)
class Ends:
    """Both ends of a window: the old frontier of each source, and the clock before and now.

    `stored` is the stream table, which has the rows of the end before. `until` is the end now, for what
    reads the window in a newer snapshot.
    """

    frontier: Callable[[Source], Frontier]
    before: datetime | None
    now: datetime
    decoded: Decoded = field(default_factory=dict)
    stored: StoredRows | None = None
    until: Frontier | None = None

    def table(self, source: Source) -> sql.Identifier:
        """The relation from which the rows of a source are read."""
        if source.relation == STORED:
            assert self.stored is not None
            return self.stored.table
        return sql.Identifier(source.table.schema, source.table.name)


def carried_list(read: Read) -> sql.Composed:
    """The select list of a read, with each value in its carried form."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(
            trusted_sql(field.carrier.carry_sql(expression)), sql.Identifier(field.name)
        )
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def stored_list(read: Read) -> sql.Composed:
    """The select list of a read, with each value as one whose binary form is the carried one."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(
            trusted_sql(field.carrier.stored_sql(expression)), sql.Identifier(field.name)
        )
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def native_list(read: Read) -> sql.Composed:
    """The select list of a read, with each value in its PostgreSQL type."""
    return sql.SQL(", ").join(
        sql.SQL("{} as {}").format(trusted_sql(expression), sql.Identifier(field.name))
        for field, expression in zip(read.fields, read.expressions, strict=True)
    )


def window_query(read: Read, ends: Ends) -> sql.Composed:
    """The change rows that satisfy the condition of the read, under the column names of the source."""
    moved = sql.SQL("select * from ({}) as t{}").format(
        captured_rows(read, ends, read.uses), where(read, [], ends.before)
    )
    if not read.follows_clock:
        return moved
    return sql.SQL(" union all ").join([moved, *_clock_crossings(read, ends)])


def _clock_crossings(read: Read, ends: Ends) -> list[sql.Composed]:
    """The rows whose condition holds at one end only because the clock moved.

    Δ(σ T) = σ@now T − σ@before T + σ@before ΔT
    """
    assert read.source is not None
    assert read.condition is not None
    used = [sql.Identifier(column.name) for column in read.source.columns if column.name in read.uses]
    then, now = (_at_time(read.condition, clock) for clock in (ends.before, ends.now))
    table = sql.Identifier(read.source.table.schema, read.source.table.name)
    return [
        sql.SQL("select {}, {} as {} from {} as t where ({}) and not coalesce({}, false)").format(
            sql.SQL(", ").join(used), sql.Literal(weight), change_of(read.source), table, holds, other
        )
        for weight, holds, other in ((1, now, then), (-1, then, now))
    ]


def _at_time(condition: str, clock: datetime | None) -> sql.SQL:
    """The condition at a time, which replaces the placeholder of the clock."""
    moment = "null" if clock is None else f"'{clock.isoformat()}'::timestamptz"
    return trusted_sql(condition.replace(CLOCK, moment))


def captured_rows(read: Read, ends: Ends, uses: Collection[str]) -> sql.Composed:
    """The change rows of the source from both buffers, under the column names of the source."""
    assert read.source is not None
    used = [column for column in read.source.columns if column.name in uses]
    columns = [
        sql.SQL("{} as {}").format(_declared_value(read.source, column), sql.Identifier(column.name))
        for column in used
    ]
    listed = sql.SQL(", ").join([*columns, sql.SQL("weight as {}").format(change_of(read.source))])
    since = ends.frontier(read.source)
    return change_rows(listed, read.source.relation, since, ends.decoded, ends.until)


def _declared_value(source: Source, column: SourceColumn) -> sql.Composable:
    """A column of a change row as the type that the source declares.

    Buffers store base types. Overloaded functions may depend on the domain, so it is restored. A null is not
    cast: a NOT NULL domain would refuse the row of a TRUNCATE.
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
        domain=trusted_sql(column.type.domain),
    )


def where(read: Read, conditions: list[sql.Composable], clock: datetime | None) -> sql.Composable:
    """The WHERE clause of the condition of the read at a time, and of these conditions."""
    own: list[sql.Composable] = []
    if read.condition:
        own.append(sql.SQL("({})").format(_at_time(read.condition, clock)))
    return where_all([*own, *conditions])


def where_all(conditions: list[sql.Composable]) -> sql.Composable:
    """The WHERE clause for conditions that must all hold."""
    parts = [condition for condition in conditions if condition is not ALWAYS]
    return sql.SQL(" where {}").format(sql.SQL(" and ").join(parts)) if parts else sql.SQL("")
