"""The graph of stream tables: which reads which. Immutable; a change builds a new one that replaces it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

from pgtrickle.model.errors import CyclicStreamTables
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, StreamTableId

_Edges = Mapping[StreamTableId, frozenset[StreamTableId]]


@dataclass(frozen=True, slots=True)
class Node:
    """One stream table: the stream tables and the base tables that it reads directly.

    `is_atomic` claims that it must not mix two versions of a source that reaches it by two paths. `owner` is
    the id of the role that owns it.
    """

    id: StreamTableId
    name: RelationName
    upstream: frozenset[StreamTableId] = frozenset()
    sources: frozenset[RelationId] = frozenset()
    is_atomic: bool = True
    owner: int = 0


@dataclass(frozen=True, slots=True)
class Graph:
    """Stream tables in dependency order: in `order`, upstream tables come before those that read them."""

    order: tuple[StreamTableId, ...]
    nodes: Mapping[StreamTableId, Node]
    _position: Mapping[StreamTableId, int]
    _upstream: _Edges
    _downstream: _Edges
    _reaching: Mapping[StreamTableId, frozenset[RelationId]]

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Graph:
        """Build the graph of these stream tables; raises if they read one another in a cycle.

        An upstream table that is not among them was dropped. Its readers stay, without that edge, so that
        one broken table never stops the others.
        """
        known = {node.id: node for node in sorted(nodes, key=lambda node: node.id)}
        upstream = {node.id: node.upstream & known.keys() for node in known.values()}
        order = _dependency_order(known, upstream)
        return cls(
            order=order,
            nodes=MappingProxyType(known),
            _position=MappingProxyType({table: position for position, table in enumerate(order)}),
            _upstream=MappingProxyType(upstream),
            _downstream=MappingProxyType(_reverse(upstream)),
            _reaching=MappingProxyType(_reaching(order, known, upstream)),
        )

    def sorted(self, tables: Iterable[StreamTableId]) -> tuple[StreamTableId, ...]:
        """Those of the stream tables that are in the graph, upstream before downstream."""
        return tuple(sorted((t for t in tables if t in self._position), key=self._position.__getitem__))

    def upstream(self, table: StreamTableId) -> frozenset[StreamTableId]:
        """The stream tables that this one reads directly."""
        return self._upstream[table]

    def downstream(self, table: StreamTableId) -> frozenset[StreamTableId]:
        """The stream tables that read this one directly."""
        return self._downstream[table]

    def all_upstream(self, table: StreamTableId) -> frozenset[StreamTableId]:
        """Every stream table that this one depends on, directly or not."""
        return _closure({table}, self._upstream) - {table}

    def all_downstream(self, table: StreamTableId) -> frozenset[StreamTableId]:
        """Every stream table that depends on this one, directly or not."""
        return _closure({table}, self._downstream) - {table}

    def sources(self, table: StreamTableId) -> frozenset[RelationId]:
        """Every base table that this stream table depends on, directly or through others."""
        return self._reaching[table]

    def common_sources(self, table: StreamTableId) -> frozenset[RelationId]:
        """Base tables that reach it through more than one of the relations it reads.

        Those relations must show the same version of them, or the result mixes two moments.
        """
        ways_in = Counter(self.nodes[table].sources)
        for read in self._upstream[table]:
            ways_in.update(self._reaching[read])
        return frozenset(source for source, ways in ways_in.items() if ways > 1)

    def is_diamond(self, table: StreamTableId) -> bool:
        """Whether a source reaches it by two paths, and the tables on them must be at one version."""
        return self.nodes[table].is_atomic and bool(self.common_sources(table))

    def arms(self, table: StreamTableId) -> frozenset[StreamTableId]:
        """The stream tables on the paths from a common source, which must be at one version."""
        common = self.common_sources(table)
        return frozenset(above for above in self.all_upstream(table) if common & self._reaching[above])


def _dependency_order(
    known: Mapping[StreamTableId, Node], upstream: Mapping[StreamTableId, frozenset[StreamTableId]]
) -> tuple[StreamTableId, ...]:
    # sorted, so that the same graph always has the same order
    sorter = TopologicalSorter({table: sorted(upstream[table]) for table in known})
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        circle = " → ".join(str(known[table].name) for table in error.args[1])
        raise CyclicStreamTables(
            f"stream tables read one another in a cycle: {circle}",
            hint="change the query of one of them so that it no longer reads the others",
        ) from error


def _reverse(edges: _Edges) -> dict[StreamTableId, frozenset[StreamTableId]]:
    readers: dict[StreamTableId, set[StreamTableId]] = {table: set() for table in edges}
    for reader, read in edges.items():
        for table in read:
            readers[table].add(reader)
    return {table: frozenset(ids) for table, ids in readers.items()}


def _reaching(
    order: Iterable[StreamTableId], known: Mapping[StreamTableId, Node], upstream: _Edges
) -> dict[StreamTableId, frozenset[RelationId]]:
    reaching: dict[StreamTableId, frozenset[RelationId]] = {}
    for table in order:
        reaching[table] = known[table].sources.union(*(reaching[read] for read in upstream[table]))
    return reaching


def _closure(start: Iterable[StreamTableId], edges: _Edges) -> frozenset[StreamTableId]:
    found = set(start)
    waiting = list(found)
    while waiting:
        new = edges[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return frozenset(found)
