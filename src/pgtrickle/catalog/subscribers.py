"""The replication slots that read stream tables: finds them, and records which fall behind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class LagEpisode:
    """A subscriber that fell behind, or one that has caught up if there is `late_since`.

    `slot_state` is `active`, `inactive`, `lost` or `missing`.
    """

    table: StreamTableId
    name: RelationName
    slot: str
    slot_state: str
    lag_bytes: int | None
    late_since: datetime | None


def find_subscribers(connection: Connection) -> None:
    """Record the slots that read publications of stream tables, as far as this role can see them."""
    connection.execute(load("pgtrickle.catalog", "sql/queries/find_subscribers.sql"), {})


def note_lag(connection: Connection, limit: int) -> list[LagEpisode]:
    """Record which subscribers fell behind by more than `limit` bytes, and which have caught up."""
    rows = connection.execute(
        load("pgtrickle.catalog", "sql/queries/note_publication_lag.sql"), {"limit": limit}
    ).fetchall()
    return [LagEpisode(row[0], RelationName(row[1], row[2]), *row[3:]) for row in rows]


def identify_published_tables(connection: Connection) -> None:
    """Give published tables without a replica identity one, as far as this role may."""
    connection.execute("select pgtrickle_internal.identify_unidentified()")
