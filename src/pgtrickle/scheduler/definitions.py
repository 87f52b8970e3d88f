"""The stream tables of a database as they are defined: an immutable value that a newer one replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from pgtrickle.catalog.tables import DependencyKind
from pgtrickle.model.errors import BadSchedule
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.effective import Asked, DiamondPolicy, effective_schedules
from pgtrickle.scheduler.graph import Graph, Node
from pgtrickle.scheduler.schedule import Manual, Schedule, parse_schedule


@dataclass(frozen=True, slots=True)
class Definition:
    """One stream table, as far as the scheduler cares."""

    id: StreamTableId
    relation: RelationId
    name: RelationName
    asked: Asked
    is_gated: bool
    is_atomic: bool
    sources: tuple[tuple[DependencyKind, RelationId], ...]
    owner: int = 0

    def reads(self, kind: DependencyKind) -> bool:
        """Whether a source of that kind is among those it reads."""
        return any(found is kind for found, _ in self.sources)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a stream table stands, as the catalog said when we last looked."""

    status: Status
    is_populated: bool
    last_refresh_at: datetime | None
    retry_at: datetime | None
    needs_reinit: bool
    initialize: bool
    frontier: Frontier | None
    upstream_frontier: Frontier | None
    data_timestamp: datetime | None = None
    recent_durations: tuple[timedelta, ...] = ()
    is_behind: bool = False
    follows_clock: bool = False


@dataclass(frozen=True, slots=True)
class Definitions:
    """All stream tables, their graph, and who reads what. Nobody needs a lock to read it.

    `schedules` are those they keep to, which for some follow from the graph.
    """

    tables: Mapping[StreamTableId, Definition]
    graph: Graph
    schedules: Mapping[StreamTableId, Schedule]
    readers: Mapping[RelationId, tuple[StreamTableId, ...]]
    relations: frozenset[RelationId]
    has_views: bool

    @classmethod
    def of(cls, tables: Iterable[Definition]) -> Definitions:
        """The value of these definitions."""
        known = {table.id: table for table in tables}
        readers: dict[RelationId, list[StreamTableId]] = {}
        for table in known.values():
            for _, relation in table.sources:
                readers.setdefault(relation, []).append(table.id)
        graph = Graph.of(_nodes(known.values()))
        return cls(
            MappingProxyType(known),
            graph,
            _schedules(known, graph),
            MappingProxyType({relation: tuple(ids) for relation, ids in readers.items()}),
            frozenset(table.relation for table in known.values()),
            any(table.reads(DependencyKind.MATERIALIZED_VIEW) for table in known.values()),
        )

    def replaced(
        self, redefined: Iterable[StreamTableId], present: Mapping[StreamTableId, Definition]
    ) -> Definitions:
        """With these stream tables as they are now, or gone; the graph is built anew only if it differs."""
        changed = {i for i in redefined if self.tables.get(i) != present.get(i)}
        if not changed:
            return self
        tables = {i: table for i, table in self.tables.items() if i not in changed}
        tables.update((i, present[i]) for i in changed if i in present)
        if all(_same_place(self.tables.get(i), present.get(i)) for i in changed):
            return replace(self, tables=MappingProxyType(tables), schedules=_schedules(tables, self.graph))
        return Definitions.of(tables.values())


Loaded = tuple[dict[StreamTableId, Definition], dict[StreamTableId, Standing]]


def loaded(connection: Connection, ids: Sequence[StreamTableId] | None = None) -> Loaded:
    """Read definitions and standings of these stream tables, or of all, in one query."""
    rows = connection.execute(
        load("pgtrickle.scheduler", "sql/definitions.sql"), {"ids": None if ids is None else list(ids)}
    ).fetchall()
    definitions = (_definition(row) for row in rows)
    return (
        {definition.id: definition for definition in definitions},
        {StreamTableId(row[0]): _standing(row[11:]) for row in rows},
    )


def graph_of(connection: Connection) -> Graph:
    """The graph of all stream tables as it is now."""
    definitions, _ = loaded(connection)
    return Graph.of(_nodes(definitions.values()))


def _nodes(tables: Iterable[Definition]) -> list[Node]:
    known = list(tables)
    by_relation = {table.relation: table.id for table in known}
    nodes = []
    for table in known:
        relations = [relation for _, relation in table.sources]
        upstream = frozenset(by_relation[relation] for relation in relations if relation in by_relation)
        sources = frozenset(relation for relation in relations if relation not in by_relation)
        nodes.append(Node(table.id, table.name, upstream, sources, table.is_atomic, table.owner))
    return nodes


def _schedules(tables: Mapping[StreamTableId, Definition], graph: Graph) -> Mapping[StreamTableId, Schedule]:
    asked = {table.id: table.asked for table in tables.values()}
    return MappingProxyType(effective_schedules(asked, graph))


def _same_place(before: Definition | None, after: Definition | None) -> bool:
    """Whether a stream table has the place in the graph that it had."""
    if before is None or after is None:
        return False
    places = [(one.relation, one.name, one.sources, one.is_atomic, one.owner) for one in (before, after)]
    return places[0] == places[1]


def _definition(row: Sequence[Any]) -> Definition:
    number, relation, schema, name, schedule, tier, policy, is_atomic, is_gated, sources, owner = row[:11]
    return Definition(
        StreamTableId(number),
        RelationId(relation),
        RelationName(schema, name),
        Asked(_schedule(schedule), Tier(tier), DiamondPolicy(policy) if policy else None),
        is_gated,
        is_atomic,
        tuple((DependencyKind(kind), RelationId(source)) for kind, source in sources),
        owner,
    )


def _standing(row: Sequence[Any]) -> Standing:
    status, is_populated, last_refresh_at, retry_at, needs_reinit, initialize, *rest = row
    frontier, upstream, data_timestamp, recent_ms, is_behind, follows_clock = rest
    return Standing(
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
    """The schedule; one that a newer version stored and we cannot read means: only when asked."""
    try:
        return parse_schedule(text)
    except BadSchedule:
        return Manual()
