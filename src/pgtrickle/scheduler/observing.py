"""What one tick sees: the definitions when they changed, and what has happened since the last tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pgtrickle.catalog.tables import DependencyKind, dependencies, generation, stream_tables
from pgtrickle.changes.window import buffers
from pgtrickle.model.errors import BadSchedule
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.due import Candidate
from pgtrickle.scheduler.graph import Graph, Node
from pgtrickle.scheduler.schedule import Manual, Schedule, parse_schedule


@dataclass(frozen=True, slots=True)
class Definitions:
    """The stream tables as they were defined at one generation."""

    generation: int
    graph: Graph
    schedules: Mapping[StreamTableId, Schedule]
    pending: sql.Composed | None
    comparing: frozenset[StreamTableId]


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known at one moment."""

    now: datetime
    definitions: Definitions
    candidates: tuple[Candidate, ...]


def defined(connection: Connection) -> Definitions:
    """Read all definitions, and compose the one query that tells which tables have changes to follow."""
    number = generation(connection)
    nodes: list[Node] = []
    schedules: dict[StreamTableId, Schedule] = {}
    readers: dict[tuple[RelationName, str], list[StreamTableId]] = {}
    tables = stream_tables(connection)
    by_relation = {table.relation: table.id for table in tables}
    kinds: dict[StreamTableId, set[DependencyKind]] = {}
    for table in tables:
        needs = dependencies(connection, table.id)
        kinds[table.id] = {need.kind for need in needs}
        captured = [need.relation for need in needs if need.is_captured]
        upstream = frozenset(by_relation[r] for r in captured if r in by_relation)
        sources = frozenset(r for r in captured if r not in by_relation)
        nodes.append(Node(table.id, table.name, upstream, sources, table.is_atomic))
        schedules[table.id] = _schedule(table.schedule)
        for relation in captured:
            column = "upstream_frontier" if relation in by_relation else "frontier"
            for buffer in buffers(relation):
                readers.setdefault((buffer, column), []).append(table.id)
    parts = [_has_changes(buffer, column, ids) for (buffer, column), ids in readers.items()]
    if any(DependencyKind.MATERIALIZED_VIEW in found for found in kinds.values()):
        parts.append(sql.Composed([sql.SQL(load("pgtrickle.scheduler", "sql/refreshed_views.sql"))]))
    pending = sql.SQL(" union ").join(parts) if parts else None
    comparing = frozenset(t for t, found in kinds.items() if DependencyKind.FOREIGN_TABLE in found)
    return Definitions(number, Graph.of(nodes), schedules, pending, comparing)


def observed(connection: Connection, known: Definitions | None, engine: Engine) -> Observation:
    """Look at the database: one round trip for the state, one more where definitions have changed."""
    with connection.pipeline():
        states = connection.execute(load("pgtrickle.scheduler", "sql/states.sql"))
        number = connection.execute(
            "select coalesce(sum(id), 0)::bigint, clock_timestamp() from pgtrickle.pgt_generation"
        )
        wanted = connection.execute(load("pgtrickle.catalog", "sql/requested.sql"))
        changes = connection.execute(known.pending) if known and known.pending else None
        rows = states.fetchall()
        found = number.fetchone()
        asked = {StreamTableId(row[0]) for row in wanted.fetchall()}
        changed = {StreamTableId(row[0]) for row in changes.fetchall()} if changes else set()
    assert found is not None
    if known is None or known.generation != found[0]:
        fresh = defined(connection)
        connection.commit()
        if known is not None and known.pending is None and fresh.pending is None:
            return Observation(found[1], fresh, ())
        return observed(connection, fresh, engine)
    connection.commit()
    candidates = tuple(_candidate(row, known, asked, changed, engine) for row in rows)
    return Observation(found[1], known, tuple(c for c in candidates if c is not None))


def _candidate(
    row: tuple[object, ...],
    known: Definitions,
    asked: set[StreamTableId],
    changed: set[StreamTableId],
    engine: Engine,
) -> Candidate | None:
    number, status, is_populated, last_refresh_at, retry_at, needs_reinit, initialize = row
    table = StreamTableId(int(str(number)))
    if table not in known.schedules or (not initialize and not is_populated and table not in asked):
        return None
    compiled = engine.known(table)
    assert last_refresh_at is None or isinstance(last_refresh_at, datetime)
    assert retry_at is None or isinstance(retry_at, datetime)
    return Candidate(
        id=table,
        schedule=known.schedules[table],
        status=Status(status),
        is_populated=bool(is_populated),
        last_refresh_at=last_refresh_at,
        has_pending_changes=table in changed,
        retry_at=retry_at,
        refresh_requested=table in asked,
        needs_reinit=bool(needs_reinit),
        # what this process has not compiled yet may follow the clock
        always=compiled is None or compiled.follows_clock,
        compares=table in known.comparing,
    )


def _schedule(text: str | None) -> Schedule:
    """The schedule; one that a newer version stored and we cannot read means: only when asked."""
    try:
        return parse_schedule(text)
    except BadSchedule:
        return Manual()


def _has_changes(buffer: RelationName, frontier: str, readers: list[StreamTableId]) -> sql.Composed:
    """Which readers of a buffer have not seen all of it: planned once for all of them."""
    return sql.SQL(
        "select s.pgt_id from pgtrickle.pgt_stream_tables s where s.pgt_id = any ({ids}) and exists ("
        "select from {buffer} b where b.xid >= pg_snapshot_xmin(s.{frontier})"
        " and not pg_visible_in_snapshot(b.xid, s.{frontier}))"
    ).format(
        ids=sql.Literal(readers),
        buffer=sql.Identifier(buffer.schema, buffer.name),
        frontier=sql.Identifier(frontier),
    )
