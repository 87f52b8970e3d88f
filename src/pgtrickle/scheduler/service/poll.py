"""Asks the database what is new since the last poll, in one statement."""

from __future__ import annotations

from pgtrickle.catalog.identity import Installation
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.policy.tick import Tick


def poll(connection: Connection, seen: Frontier | None, *, has_views: bool) -> Tick:
    """What happened since a snapshot; one round trip on a connection in autocommit mode."""
    row = connection.execute(
        load("pgtrickle.scheduler.service", "sql/tick.sql"),
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
