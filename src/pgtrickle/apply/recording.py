"""Records what a refresh changes, in the statement that writes it, for those who follow the stream table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pgtrickle.apply.compose import comma_list, numbered_names, relation, trusted_sql
from pgtrickle.apply.finals import cte
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, sql

REFRESHED_AT = "refreshed_at"
"""The parameter with the time of the snapshot."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The table of kept changes, with the columns `c1 … cn` for these columns of the stream table.

    A refresh that changes more than `most_rows` records a reset instead. The time of the refresh is a
    parameter: two recordings that differ in nothing else have the same statement.
    """

    table: RelationName
    columns: Sequence[str]
    most_rows: int
    stream_table: int
    refreshed_at: datetime = field(compare=False)


@dataclass(frozen=True, slots=True)
class MovedRows:
    """The table for the change that a refresh makes to an auxiliary result, with columns `c1 … cn`."""

    table: RelationName


def moved_steps(moved: MovedRows, values: Sequence[sql.Composable]) -> list[sql.Composable]:
    """The step that records the rows of `delta d`, whose columns have these values in their order."""
    columns = comma_list(numbered_names("c", len(values)))
    rows = sql.SQL("insert into {} (weight, {}) select d.n, {} from delta d returning 1").format(
        relation(moved.table), columns, comma_list(values)
    )
    return [cte("recorded", rows)]


def recording_steps(
    recording: Recording, names: Sequence[str], values: Sequence[sql.Composable]
) -> list[sql.Composable]:
    """The steps that record the rows of `delta d`, whose columns have these names and values.

    Deleted rows come first, so that a reader with a unique key never has two rows of the same key.
    """
    numbers = {name: number for number, name in enumerate(recording.columns, start=1)}
    targets = [trusted_sql(f"c{numbers[name]}") for name in names]
    rows = sql.SQL(
        "insert into {table} (batch, point, weight, {targets})"
        " select (select nextval('pgtrickle.pgt_change_points')), nextval('pgtrickle.pgt_change_points'),"
        " d.n, {values} from (select * from delta order by n > 0) d"
        " where (select sum(abs(n)) from delta) <= {most} returning batch, point"
    ).format(
        table=relation(recording.table),
        targets=comma_list(targets),
        values=comma_list(values),
        most=sql.Literal(recording.most_rows),
    )
    batch = sql.SQL(
        "insert into pgtrickle.pgt_batches (batch, pgt_id, last_point, row_count, refreshed_at)"
        " select min(batch), {table}, max(point), count(*), {refreshed_at} from recorded having count(*) > 0"
    ).format(table=sql.Literal(recording.stream_table), refreshed_at=sql.Placeholder(REFRESHED_AT))
    return [cte("recorded", rows), cte("batch", batch)]


def record_reset(connection: Connection, table: int, refreshed_at: datetime, reason: str) -> None:
    """Record that the content of a stream table was replaced; readers have to read the table again."""
    connection.execute("select pgtrickle_internal.record_reset(%s, %s, %s)", (table, refreshed_at, reason))


def record_too_many(connection: Connection, recording: Recording, rows: int) -> None:
    """Record a reset in place of more rows than are kept."""
    reason = f"a refresh changed {rows:,} rows, and at most {recording.most_rows:,} are kept"
    record_reset(connection, recording.stream_table, recording.refreshed_at, reason)
