"""Reads the definitions and states of stream tables from the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.errors import BadSchedule
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.policy.definitions import TableDefinition, TableState, graph_nodes
from pgtrickle.scheduler.policy.effective_schedules import DiamondPolicy, RequestedSchedule
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.schedule import Manual, Schedule, parse_schedule

Loaded = tuple[dict[StreamTableId, TableDefinition], dict[StreamTableId, TableState]]


def load_definitions(connection: Connection, ids: Sequence[StreamTableId] | None = None) -> Loaded:
    """Read definitions and states of these stream tables, or of all, in one query."""
    rows = connection.execute(
        load("pgtrickle.scheduler.service", "sql/definitions.sql"),
        {"ids": None if ids is None else list(ids)},
    ).fetchall()
    definitions = (_definition(row) for row in rows)
    return (
        {definition.id: definition for definition in definitions},
        {StreamTableId(row[0]): _table_state(row[10:]) for row in rows},
    )


def load_graph(connection: Connection) -> Graph:
    """The current graph of all stream tables."""
    definitions, _ = load_definitions(connection)
    return Graph.of(graph_nodes(definitions.values()))


def _definition(row: Sequence[Any]) -> TableDefinition:
    number, relation, schema, name, schedule, tier, policy, is_atomic, is_gated, sources = row[:10]
    return TableDefinition(
        StreamTableId(number),
        RelationId(relation),
        RelationName(schema, name),
        RequestedSchedule(_schedule(schedule), Tier(tier), DiamondPolicy(policy) if policy else None),
        is_gated,
        is_atomic,
        tuple((DependencyKind(kind), RelationId(source)) for kind, source in sources),
    )


def _table_state(row: Sequence[Any]) -> TableState:
    status, is_populated, last_refresh_at, retry_at, needs_reinit, initialize, *rest = row
    frontier, upstream, data_timestamp, recent_ms, is_behind, follows_clock = rest
    return TableState(
        Status(status),
        is_populated,
        last_refresh_at,
        retry_at,
        needs_reinit,
        initialize,
        Frontier.parse(frontier) if frontier else None,
        Frontier.parse(upstream) if upstream else None,
        data_timestamp,
        tuple(timedelta(milliseconds=duration) for duration in recent_ms),
        is_behind,
        follows_clock,
    )


def _schedule(text: str | None) -> Schedule:
    """Parse a stored schedule; one that only a newer version understands counts as manual."""
    try:
        return parse_schedule(text)
    except BadSchedule:
        return Manual()
