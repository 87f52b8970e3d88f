"""How far a load has come, from what PostgreSQL itself counts while rows are copied."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgtrickle.commands.connections import qualified_name
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(slots=True)
class CopyProgress:
    """Rows that refreshes of this role have read and staged since the first look.

    PostgreSQL forgets a copy when it ends, so its last known count is kept:
    the sums never shrink, and lag a little behind.
    """

    is_copying: bool = False
    _counts: dict[tuple[int, object, str], int] = field(default_factory=dict)

    def poll(self, connection: Connection) -> None:
        """Take in what is being copied right now."""
        found = connection.execute(load("pgtrickle.commands", "sql/copies.sql")).fetchall()
        self.is_copying = bool(found)
        for pid, began, direction, rows in found:
            self._counts[pid, began, direction] = rows

    @property
    def read(self) -> int:
        """Rows that came out of sources and buffers."""
        return self._sum("COPY TO")

    @property
    def staged(self) -> int:
        """Rows of results that went back."""
        return self._sum("COPY FROM")

    def _sum(self, wanted: str) -> int:
        return sum(rows for (_, _, direction), rows in self._counts.items() if direction == wanted)


def rows_to_load(connection: Connection, name: str) -> int | None:
    """About how many rows a first load of a stream table reads; None if it has been loaded, or is unknown."""
    asked = {"name": qualified_name(connection, name)}
    row = connection.execute(load("pgtrickle.commands", "sql/rows_to_load.sql"), asked).fetchone()
    return int(row[0]) if row and row[0] else None
