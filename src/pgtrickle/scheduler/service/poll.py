"""Asks the database what is new since the last poll, in one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgtrickle.catalog.identity import Installation
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import row_as
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.policy.tick import Tick


def poll(connection: Connection, seen: Frontier | None, *, has_views: bool) -> Tick:
    """What happened since a snapshot; one round trip on a connection in autocommit mode."""
    result = connection.execute(
        load("pgtrickle.scheduler.service", "sql/tick.sql"),
        {"seen": str(seen) if seen else None, "has_views": has_views},
    )
    return row_as(_tick, result)


def _tick(
    *,
    snapshot: str,
    redefined: Sequence[StreamTableId | None],
    touched: Mapping[str, Sequence[str]],
    requested: Sequence[StreamTableId],
    refreshed_views: Sequence[StreamTableId],
    installation: str,
    **others: Any,
) -> Tick:
    return Tick(
        snapshot=Frontier.parse(snapshot),
        redefined=frozenset(table for table in redefined if table is not None),
        is_all_redefined=None in redefined,
        touched={RelationId(int(source)): tuple(map(int, xids)) for source, xids in touched.items()},
        requested=frozenset(requested),
        refreshed_views=frozenset(refreshed_views),
        installation=Installation.parse(installation),
        **others,
    )
