"""Which due tables are refreshed together, so that nobody shows two versions of a common source."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.graph import Graph


def groups(due: Sequence[StreamTableId], graph: Graph) -> list[tuple[StreamTableId, ...]]:
    """The due tables in groups, each in dependency order; a group commits at once.

    Tables that read one another go together. A table that a source reaches by two ways brings
    along whatever lies on them, due or not: otherwise one way would be newer than the other.
    """
    wanted = set(due)
    for table in due:
        if table in graph.nodes and graph.common_sources(table):
            wanted |= graph.all_upstream(table)
    found: list[set[StreamTableId]] = []
    for table in (t for t in graph.order if t in wanted):
        touching = [group for group in found if group & graph.upstream(table)]
        merged = {table}.union(*touching)
        found = [group for group in found if group not in touching] + [merged]
    return [tuple(t for t in graph.order if t in group) for group in found]
