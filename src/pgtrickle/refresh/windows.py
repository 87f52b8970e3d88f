"""Which of a stream table's sources have changed since it was last refreshed."""

from __future__ import annotations

from pgtrickle.changes.relations import Ends
from pgtrickle.changes.window import SourceWindow, windows
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.session import Session


def pending_windows(session: Session, table: StreamTable, found: Compilation) -> list[SourceWindow]:
    """The windows of its sources, as the session sees them; none before the first load."""
    if not table.is_populated:
        return []
    since = []
    for source in found.sources:
        frontier = start_of(table, source)
        if frontier is not None:
            since.append((source.relation, frontier))
    return windows(session.read, since)


def start_of(table: StreamTable, source: Source) -> Frontier | None:
    """Up to where the table has followed a source."""
    return table.upstream_frontier if source.kind is SourceKind.STREAM_TABLE else table.frontier


def ends_of(session: Session, table: StreamTable) -> Ends:
    """Where the reads of a refresh begin and end."""

    def frontier(source: Source) -> Frontier:
        return start_of(table, source) or Frontier(3, 3)

    return Ends(frontier, table.data_timestamp, session.taken_at)
