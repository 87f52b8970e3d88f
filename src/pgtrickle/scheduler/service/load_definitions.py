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
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.policy.definitions import TableDefinition, TableState, graph_nodes
from pgtrickle.scheduler.policy.effective_schedules import DiamondPolicy, RequestedSchedule
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.schedule import Manual, Schedule, parse_schedule

Loaded = tuple[dict[StreamTableId, TableDefinition], dict[StreamTableId, TableState]]


def load_definitions(connection: Connection, ids: Sequence[StreamTableId] | None = None) -> Loaded:
    """Read definitions and states of these stream tables, or of all, in one query."""
    result = connection.execute(
        load("pgtrickle.scheduler.service", "sql/definitions.sql"),
        {"ids": None if ids is None else list(ids)},
    )
    rows = rows_as(_definition_and_state, result)
    return (
        {definition.id: definition for definition, _ in rows},
        {definition.id: state for definition, state in rows},
    )


def load_graph(connection: Connection) -> Graph:
    """The current graph of all stream tables."""
    definitions, _ = load_definitions(connection)
    return Graph.of(graph_nodes(definitions.values()))


def _definition_and_state(
    *,
    pgt_id: StreamTableId,
    relation: RelationId,
    schema: str,
    name: str,
    schedule: str | None,
    tier: str,
    diamond_policy: str | None,
    is_gated: bool,
    is_atomic: bool,
    sources: Sequence[tuple[str, RelationId]],
    owner: int,
    **state: Any,
) -> tuple[TableDefinition, TableState]:
    definition = TableDefinition(
        pgt_id,
        relation,
        RelationName(schema, name),
        RequestedSchedule(
            _schedule(schedule), Tier(tier), DiamondPolicy(diamond_policy) if diamond_policy else None
        ),
        is_gated,
        is_atomic,
        tuple((DependencyKind(kind), source) for kind, source in sources),
        owner,
    )
    return definition, _table_state(**state)


def _table_state(
    *,
    status: str,
    frontier: str | None,
    upstream_frontier: str | None,
    recent_ms: Sequence[float],
    **others: Any,
) -> TableState:
    return TableState(
        status=Status(status),
        frontier=Frontier.parse(frontier) if frontier else None,
        upstream_frontier=Frontier.parse(upstream_frontier) if upstream_frontier else None,
        recent_durations=tuple(timedelta(milliseconds=duration) for duration in recent_ms),
        **others,
    )


def _schedule(text: str | None) -> Schedule:
    """Parse a stored schedule; one that only a newer version understands counts as manual."""
    try:
        return parse_schedule(text)
    except BadSchedule:
        return Manual()
