"""The sizes of all change buffers, for those who watch them grow."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class BufferSize:
    """The bytes of both change buffers of a source."""

    source: RelationId
    name: str
    bytes: int


def buffer_sizes(connection: Connection) -> tuple[BufferSize, ...]:
    """The sizes of the buffers of all sources, largest first, without reading them."""
    return rows_as(BufferSize, connection.execute(load("pgtrickle.catalog", "sql/queries/buffer_sizes.sql")))
