"""The window between two frontiers: which sources changed in it, and by how many rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pgtrickle.model.auxiliary import moved_table
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, sql

CHANGES = "pgtrickle_changes"


@dataclass(frozen=True, slots=True)
class SourceWindow:
    """How many change rows a source has in the window, and whether it was truncated."""

    relation: RelationId
    rows: int
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Where a refresh reads the change rows of a source that is captured from the log.

    Rows can be decoded before the snapshot sees their transaction, so `until`, the snapshot, bounds them.
    """

    tables: tuple[RelationName, ...]
    until: Frontier


Decoded = Mapping[RelationId, DecodedRows]
NOTHING_DECODED: Final[Decoded] = MappingProxyType({})

Start = tuple[RelationId, Frontier]
"""A source, and the frontier up to which a reader has followed it."""


def buffers(relation: RelationId) -> tuple[RelationName, RelationName]:
    """The two change buffers of a source, which take turns."""
    return RelationName(CHANGES, f"changes_{relation}_0"), RelationName(CHANGES, f"changes_{relation}_1")


def unseen_by(frontier: Frontier) -> sql.Composed:
    """The condition for change rows that the frontier has not seen.

    The other end needs no condition: the reading snapshot does not see later rows. The range of transaction
    ids is cheap to compare, and lets the index of a grown buffer skip old rows.
    """
    return sql.SQL(
        "xid >= {xmin}::text::xid8 and not pg_visible_in_snapshot(xid, {old}::pg_snapshot)"
    ).format(xmin=sql.Literal(str(frontier.xmin)), old=sql.Literal(str(frontier)))


def change_rows(
    columns: sql.Composable,
    relation: RelationId,
    since: Frontier,
    decoded: Decoded = NOTHING_DECODED,
    until: Frontier | None = None,
) -> sql.Composed:
    """Select columns of the change rows of a source that a frontier has not seen.

    Where they are read in a newer snapshot, `until` is the frontier that has seen the last of them.
    """
    if relation < 0:
        # an auxiliary result was changed by the refresh that asks
        moved = moved_table(relation)
        return sql.SQL("select {} from {}").format(columns, sql.Identifier(moved.schema, moved.name))
    found = decoded.get(relation)
    condition: sql.Composable = unseen_by(since)
    last = until if found is None else found.until
    if last is not None:
        condition = sql.SQL("{} and pg_visible_in_snapshot(xid, {}::pg_snapshot)").format(
            condition, sql.Literal(str(last))
        )
    return sql.SQL(" union all ").join(
        sql.SQL("select {} from {} where {}").format(columns, sql.Identifier(b.schema, b.name), condition)
        for b in (buffers(relation) if found is None else found.tables)
    )


def count_windows(
    connection: Connection, since: Iterable[Start], decoded: Decoded = NOTHING_DECODED
) -> dict[Start, SourceWindow]:
    """Count the windows of these sources since their frontiers in one query; unchanged ones are left out."""
    starts = list(dict.fromkeys(since))
    parts = [_count_query(number, *start, decoded) for number, start in enumerate(starts)]
    if not parts:
        return {}
    rows = connection.execute(sql.SQL(" union all ").join(parts)).fetchall()
    return {starts[r[0]]: SourceWindow(starts[r[0]][0], r[1], r[2]) for r in rows if r[1] or r[2]}


def _count_query(number: int, relation: RelationId, frontier: Frontier, decoded: Decoded) -> sql.Composed:
    return sql.SQL(
        "select {}, count(*) filter (where weight <> 0), coalesce(bool_or(weight = 0), false) from ({}) c"
    ).format(sql.Literal(number), change_rows(sql.SQL("weight"), relation, frontier, decoded))
