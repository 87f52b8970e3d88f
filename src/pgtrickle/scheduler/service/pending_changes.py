"""Asks every change buffer which stream tables have unseen changes: at the start, and once a minute."""

from __future__ import annotations

from pgtrickle.changes.source_window import buffers
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.scheduler.policy.definitions import Definitions

TOGETHER = 50
"""Sources per statement, which holds a lock on the buffers of each."""


def pending_tables(
    connection: Connection, definitions: Definitions
) -> tuple[frozenset[StreamTableId], Frontier]:
    """The stream tables with unseen changes up to the returned snapshot; needs autocommit."""
    row = connection.execute("select pg_current_snapshot()::text").fetchone()
    assert row is not None
    captured = _captured_sources(connection, definitions)
    parts = [
        _has_changes(buffer, "upstream_frontier" if source in definitions.relations else "frontier", readers)
        for source, readers in definitions.readers.items()
        if source in captured
        for buffer in buffers(source)
    ]
    found: set[StreamTableId] = set()
    for start in range(0, len(parts), 2 * TOGETHER):
        query = sql.SQL(" union ").join(parts[start : start + 2 * TOGETHER])
        found.update(StreamTableId(number) for (number,) in connection.execute(query))
    return frozenset(found), Frontier.parse(row[0])


def _captured_sources(connection: Connection, definitions: Definitions) -> set[RelationId]:
    """The sources that have both buffers; others still wait for them, or have lost them."""
    rows = connection.execute(
        "select s.id from unnest(%s::bigint[]) s(id), format('pgtrickle_changes.changes_%%s', s.id) b(name)"
        " where to_regclass(b.name || '_0') is not null and to_regclass(b.name || '_1') is not null",
        (list(definitions.readers),),
    )
    return {RelationId(source) for (source,) in rows}


def _has_changes(buffer: RelationName, frontier: str, readers: tuple[StreamTableId, ...]) -> sql.Composed:
    """The readers of a buffer that have not seen all of it, in one plan for all of them."""
    return sql.SQL(
        "select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_id = any ({ids}) and exists ("
        "select from {buffer} b where b.xid >= pg_snapshot_xmin(s.{frontier})"
        " and not pg_visible_in_snapshot(b.xid, s.{frontier}))"
    ).format(
        ids=sql.Literal(list(readers)),
        buffer=sql.Identifier(buffer.schema, buffer.name),
        frontier=sql.Identifier(frontier),
    )
