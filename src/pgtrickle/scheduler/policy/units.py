"""Which due stream tables are refreshed together, and which of these units wait for which.

Tables in one unit read each source once, share Spark's work, and never show two versions of a common
source. A slow stream table is a unit of its own, so that the fast ones do not wait for it. Tables of
different owners share a unit only where two paths of one source must agree, because an owner can make a
table slow or lock it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.scheduler.policy.graph import Graph

MAX_TOGETHER = 64
"""At most this many stream tables share a transaction only because they read the same source."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Stream tables that commit together, in dependency order, once the units in `after` have ended."""

    tables: tuple[StreamTableId, ...]
    after: tuple[Unit, ...] = ()


def groups(due: Sequence[StreamTableId], graph: Graph) -> list[tuple[StreamTableId, ...]]:
    """The due tables in groups that do not read one another, each in dependency order.

    A table that a source reaches by two paths brings along every table on them, due or not. Otherwise one
    path would be newer than the other. A table that may mix versions is a group of its own.
    """
    bonds = _Bonds(_with_companions(due, graph))
    for table in graph.sorted(bonds.members):
        if graph.is_diamond(table):
            bonds.tie(table, graph.all_upstream(table))
        if _goes_along(table, graph):
            bonds.tie(table, graph.upstream(table))
    return [unit.tables for unit in _sort_units(bonds, graph)]


def units(due: Sequence[StreamTableId], graph: Graph, *, slow: Collection[StreamTableId] = ()) -> list[Unit]:
    """The due tables in units, each after the units it waits for."""
    bonds = _Bonds(_with_companions(due, graph))
    quick = {table for table in bonds.members if table not in slow}
    by_source: dict[tuple[RelationId, int], list[StreamTableId]] = {}
    for table in graph.sorted(bonds.members):
        if graph.is_diamond(table):
            bonds.tie(table, graph.all_upstream(table))
        if table in quick and _goes_along(table, graph):
            owner = graph.nodes[table].owner
            own = {above for above in graph.upstream(table) if graph.nodes[above].owner == owner}
            bonds.tie(table, own & quick)
            for source in graph.nodes[table].sources:
                by_source.setdefault((source, owner), []).append(table)
    for readers in by_source.values():
        for first, second in pairwise(readers):
            bonds.tie(first, (second,), most=MAX_TOGETHER)
    return _sort_units(bonds, graph)


def _with_companions(due: Iterable[StreamTableId], graph: Graph) -> set[StreamTableId]:
    wanted = {table for table in due if table in graph.nodes}
    for table in tuple(wanted):
        if graph.is_diamond(table):
            wanted |= graph.all_upstream(table)
    return wanted


def _goes_along(table: StreamTableId, graph: Graph) -> bool:
    """Whether it may commit with the tables it reads; one that need not be consistent goes alone."""
    return graph.nodes[table].is_atomic or not graph.common_sources(table)


def _sort_units(bonds: _Bonds, graph: Graph) -> list[Unit]:
    """The units in an order in which each comes after those it waits for.

    Tied tables may lie on both sides of one that is not tied to them; then all of them become one unit.
    """
    while True:
        waits = {
            table: {bonds.head(above) for member in group for above in graph.upstream(member) & bonds.members}
            - {table}
            for table, group in bonds.by_head().items()
        }
        try:
            order = list(
                TopologicalSorter({head: sorted(above) for head, above in waits.items()}).static_order()
            )
        except CycleError as circle:
            bonds.tie(circle.args[1][0], circle.args[1])
            continue
        made: dict[StreamTableId, Unit] = {}
        for head in order:
            members = graph.sorted(bonds.by_head()[head])
            made[head] = Unit(members, tuple(made[above] for above in sorted(waits[head])))
        return list(made.values())


@dataclass(slots=True)
class _Bonds:
    """Disjoint sets of tables, merged as tables are tied together."""

    members: set[StreamTableId]
    _heads: dict[StreamTableId, StreamTableId] = field(default_factory=dict)
    _groups: dict[StreamTableId, set[StreamTableId]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._heads = {table: table for table in self.members}
        self._groups = {table: {table} for table in self.members}

    def head(self, table: StreamTableId) -> StreamTableId:
        return self._heads[table]

    def by_head(self) -> dict[StreamTableId, set[StreamTableId]]:
        return self._groups

    def tie(self, table: StreamTableId, others: Iterable[StreamTableId], *, most: int | None = None) -> None:
        """Merge the groups of these tables; with `most`, only if the result does not become larger."""
        for other in others:
            if other not in self.members:
                continue
            kept, gone = self._heads[table], self._heads[other]
            if kept == gone or (most and len(self._groups[kept]) + len(self._groups[gone]) > most):
                continue
            for moved in self._groups[gone]:
                self._heads[moved] = kept
            self._groups[kept] |= self._groups.pop(gone)
