"""One look at the database: what is new since the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pgtrickle.catalog.identity import Installation
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Tick:
    """What one look saw. `touched` gives the transactions that wrote to a source."""

    now: datetime
    snapshot: Frontier
    redefined: frozenset[StreamTableId]
    is_all_redefined: bool
    touched: Mapping[RelationId, tuple[int, ...]]
    requested: frozenset[StreamTableId]
    refreshed_views: frozenset[StreamTableId]
    is_draining: bool = False
    cache_generation: int = 0
    installation: Installation | None = None


def look(connection: Connection, seen: Frontier | None, *, has_views: bool) -> Tick:
    """Ask what happened since a snapshot: one round trip on a connection in autocommit mode."""
    row = connection.execute(
        load("pgtrickle.scheduler", "sql/tick.sql"),
        {"seen": str(seen) if seen else None, "has_views": has_views},
    ).fetchone()
    assert row is not None
    now, snapshot, redefined, touched, requested, refreshed_views, is_draining, *rest = row
    cache_generation, installation = rest
    return Tick(
        now,
        Frontier.parse(snapshot),
        frozenset(StreamTableId(number) for number in redefined if number is not None),
        None in redefined,
        {RelationId(int(source)): tuple(map(int, xids)) for source, xids in touched.items()},
        frozenset(map(StreamTableId, requested)),
        frozenset(map(StreamTableId, refreshed_views)),
        is_draining,
        cache_generation,
        Installation.parse(installation),
    )
