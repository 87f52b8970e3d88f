"""Which due tables are refreshed together, so that nobody shows two versions of a common source."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.graph import Graph


def groups(due: Sequence[StreamTableId], graph: Graph) -> list[tuple[StreamTableId, ...]]:
    """The due tables in groups, each in dependency order; a group commits at once.

    Tables that read one another go together. A table that a source reaches by two ways brings
    along whatever lies on them, due or not: otherwise one way would be newer than the other. If it
    may show two versions of that source, it waits for nobody, and comes by itself after the others.
    """
    brought: set[StreamTableId] = set()
    for table in due:
        if table in graph.nodes and graph.is_diamond(table):
            brought |= graph.all_upstream(table)
    wanted = brought.union(due)
    found: list[set[StreamTableId]] = []
    for table in (t for t in graph.order if t in wanted):
        may_differ = not graph.nodes[table].is_atomic and graph.common_sources(table)
        goes_along = table in brought or not may_differ
        touching = [group for group in found if goes_along and group & graph.upstream(table)]
        merged = {table}.union(*touching)
        # in the place of the first: what may come after the others must not come before them
        place = found.index(touching[0]) if touching else len(found)
        found = [group for group in found if group not in touching]
        found.insert(place, merged)
    return [tuple(t for t in graph.order if t in group) for group in found]
