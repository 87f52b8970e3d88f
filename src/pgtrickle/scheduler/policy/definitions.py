"""The definitions of all stream tables of a database, as an immutable value that a newer one replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, Status, StreamTableId
from pgtrickle.scheduler.policy.effective_schedules import RequestedSchedule, effective_schedules
from pgtrickle.scheduler.policy.graph import Graph, Node
from pgtrickle.scheduler.policy.schedule import Schedule


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What the scheduler needs to know about the definition of one stream table."""

    id: StreamTableId
    relation: RelationId
    name: RelationName
    asked: RequestedSchedule
    is_gated: bool
    is_atomic: bool
    sources: tuple[tuple[DependencyKind, RelationId], ...]
    owner: int = 0

    def reads(self, kind: DependencyKind) -> bool:
        """Whether it reads a source of that kind."""
        return any(found is kind for found, _ in self.sources)


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a stream table when the catalog was last read."""

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

    @property
    def owes_load(self) -> bool:
        """Whether its next refresh loads all of its rows."""
        return not self.is_populated or self.needs_reinit


@dataclass(frozen=True, slots=True)
class Definitions:
    """All stream tables, their graph, and the readers of each source. Immutable, so it needs no lock.

    `schedules` are the effective ones, which for some tables follow from the graph.
    """

    tables: Mapping[StreamTableId, TableDefinition]
    graph: Graph
    schedules: Mapping[StreamTableId, Schedule]
    readers: Mapping[RelationId, tuple[StreamTableId, ...]]
    relations: frozenset[RelationId]
    has_views: bool

    @classmethod
    def of(cls, tables: Iterable[TableDefinition]) -> Definitions:
        """Build the value from single definitions."""
        known = {table.id: table for table in tables}
        readers: dict[RelationId, list[StreamTableId]] = {}
        for table in known.values():
            for _, relation in table.sources:
                readers.setdefault(relation, []).append(table.id)
        graph = Graph.of(graph_nodes(known.values()))
        return cls(
            MappingProxyType(known),
            graph,
            _schedules(known, graph),
            MappingProxyType({relation: tuple(ids) for relation, ids in readers.items()}),
            frozenset(table.relation for table in known.values()),
            any(table.reads(DependencyKind.MATERIALIZED_VIEW) for table in known.values()),
        )

    def with_changes(
        self, redefined: Iterable[StreamTableId], present: Mapping[StreamTableId, TableDefinition]
    ) -> Definitions:
        """The same with some stream tables changed or dropped; the graph is rebuilt only if it differs."""
        changed = {i for i in redefined if self.tables.get(i) != present.get(i)}
        if not changed:
            return self
        tables = {i: table for i, table in self.tables.items() if i not in changed}
        tables.update((i, present[i]) for i in changed if i in present)
        if all(_same_place(self.tables.get(i), present.get(i)) for i in changed):
            return replace(self, tables=MappingProxyType(tables), schedules=_schedules(tables, self.graph))
        return Definitions.of(tables.values())


def graph_nodes(tables: Iterable[TableDefinition]) -> list[Node]:
    """The nodes of the graph of these stream tables."""
    known = list(tables)
    by_relation = {table.relation: table.id for table in known}
    nodes = []
    for table in known:
        relations = [relation for _, relation in table.sources]
        upstream = frozenset(by_relation[relation] for relation in relations if relation in by_relation)
        sources = frozenset(relation for relation in relations if relation not in by_relation)
        nodes.append(Node(table.id, table.name, upstream, sources, table.is_atomic, table.owner))
    return nodes


def _schedules(
    tables: Mapping[StreamTableId, TableDefinition], graph: Graph
) -> Mapping[StreamTableId, Schedule]:
    asked = {table.id: table.asked for table in tables.values()}
    return MappingProxyType(effective_schedules(asked, graph))


def _same_place(before: TableDefinition | None, after: TableDefinition | None) -> bool:
    """Whether a stream table keeps its place in the graph."""
    if before is None or after is None:
        return False
    places = [(one.relation, one.name, one.sources, one.is_atomic, one.owner) for one in (before, after)]
    return places[0] == places[1]
