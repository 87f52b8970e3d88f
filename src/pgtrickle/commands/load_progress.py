"""Measures the progress of a load from the rows that PostgreSQL counts during COPY."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgtrickle.commands.connections import qualified_name
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(slots=True)
class CopyProgress:
    """Rows that refreshes of this role have read and staged since the first poll.

    PostgreSQL drops the count when a COPY ends, so the last known count is kept:
    the sums never shrink, and are slightly out of date.
    """

    is_copying: bool = False
    _counts: dict[tuple[int, object, str], int] = field(default_factory=dict)

    def poll(self, connection: Connection) -> None:
        """Read the counts of the running COPY statements."""
        found = connection.execute(load("pgtrickle.commands", "sql/copies.sql")).fetchall()
        self.is_copying = bool(found)
        for pid, began, direction, rows in found:
            self._counts[pid, began, direction] = rows

    @property
    def read(self) -> int:
        """Rows read from sources and change buffers."""
        return self._sum("COPY TO")

    @property
    def staged(self) -> int:
        """Result rows written to staging tables."""
        return self._sum("COPY FROM")

    def _sum(self, wanted: str) -> int:
        return sum(rows for (_, _, direction), rows in self._counts.items() if direction == wanted)


def rows_to_load(connection: Connection, name: str) -> int | None:
    """Estimate how many rows a first load reads; None if the table is loaded or unknown."""
    parameters = {"name": qualified_name(connection, name)}
    row = connection.execute(load("pgtrickle.commands", "sql/rows_to_load.sql"), parameters).fetchone()
    return int(row[0]) if row and row[0] else None
