"""Which sources of a stream table have changed since its last refresh."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.changes.relations import Ends, StoredRows
from pgtrickle.changes.source_window import SourceWindow, Start, count_windows
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.session import Session


def pending_windows(session: Session, members: Sequence[CompiledTable]) -> list[list[SourceWindow]]:
    """For each table, the windows of its sources, counted in one query; none before the first load.

    A window that several tables read from the same frontier is counted once.
    """
    starts = [starts_of(member) for member in members]
    seen = count_windows(session.read, [start for part in starts for start in part], session.decoded)
    return [[seen[start] for start in part if start in seen] for part in starts]


def starts_of(member: CompiledTable) -> list[Start]:
    """The sources of a table, each with the frontier up to which it has followed them."""
    if not member.table.is_populated:
        return []
    frontiers = [(source.relation, start_of(member.table, source)) for source in member.compilation.sources]
    return [(relation, frontier) for relation, frontier in frontiers if frontier is not None]


def start_of(table: StreamTable, source: Source) -> Frontier | None:
    """The frontier up to which the table has followed a source."""
    return table.upstream_frontier if source.kind is SourceKind.STREAM_TABLE else table.frontier


def ends_of(session: Session, table: StreamTable) -> Ends:
    """Both ends of the window of a refresh."""

    def frontier(source: Source) -> Frontier:
        return start_of(table, source) or Frontier(3, 3)

    stored = StoredRows(table.name, table.match_columns)
    return Ends(frontier, table.data_timestamp, session.taken_at, session.decoded, stored)
