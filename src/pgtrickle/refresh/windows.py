"""Which of a stream table's sources have changed since it was last refreshed."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.changes.relations import Ends
from pgtrickle.changes.window import SourceWindow, Start, windows
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.session import Session


def pending_windows(session: Session, table: StreamTable, found: Compilation) -> list[SourceWindow]:
    """The windows of its sources, as the session sees them; none before the first load."""
    (pending,) = all_pending_windows(session, [(table, found)])
    return pending


def all_pending_windows(
    session: Session, tables: Sequence[tuple[StreamTable, Compilation]]
) -> list[list[SourceWindow]]:
    """The windows of several tables' sources; one that several read from one frontier on is counted once."""
    starts = [_starts(table, found) for table, found in tables]
    seen = windows(session.read, [start for part in starts for start in part])
    return [[seen[start] for start in part if start in seen] for part in starts]


def _starts(table: StreamTable, found: Compilation) -> list[Start]:
    if not table.is_populated:
        return []
    frontiers = [(source.relation, start_of(table, source)) for source in found.sources]
    return [(relation, frontier) for relation, frontier in frontiers if frontier is not None]


def start_of(table: StreamTable, source: Source) -> Frontier | None:
    """Up to where the table has followed a source."""
    return table.upstream_frontier if source.kind is SourceKind.STREAM_TABLE else table.frontier


def ends_of(session: Session, table: StreamTable) -> Ends:
    """Where the reads of a refresh begin and end."""

    def frontier(source: Source) -> Frontier:
        return start_of(table, source) or Frontier(3, 3)

    return Ends(frontier, table.data_timestamp, session.taken_at)
