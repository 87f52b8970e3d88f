"""Measures the progress of loads, from the COPY statements of this role or from the reports of a sidecar."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is: rows that were read and staged, and about how many there are in all."""

    rows_read: int = 0
    rows_staged: int = 0
    rows_expected: int | None = None
    is_reading: bool = False

    def __str__(self) -> str:
        if not self.is_reading and self.rows_read >= (self.rows_expected or 1):
            return f"{self.rows_read:,} rows read, computing"
        about = f" of about {self.rows_expected:,}" if self.rows_expected else ""
        staged = f", {self.rows_staged:,} staged" if self.rows_staged else ""
        return f"{self.rows_read:,}{about} rows read{staged}"


@dataclass(slots=True)
class CopyProgress:
    """Rows that refreshes of this role have read and staged since the first poll.

    PostgreSQL drops the count when a COPY ends, so the last known count is kept:
    the sums never shrink, and are slightly out of date.
    """

    rows_expected: int | None = None
    _counts: dict[tuple[int, object, str], int] = field(default_factory=dict)

    def poll(self, connection: Connection) -> LoadProgress:
        """Read the counts of the running COPY statements."""
        found = connection.execute(load("pgtrickle.catalog", "sql/queries/copies.sql")).fetchall()
        for pid, began, direction, rows in found:
            self._counts[pid, began, direction] = rows
        return LoadProgress(self._sum("COPY TO"), self._sum("COPY FROM"), self.rows_expected, bool(found))

    def _sum(self, wanted: str) -> int:
        return sum(rows for (_, _, direction), rows in self._counts.items() if direction == wanted)


def rows_to_load(connection: Connection, table: StreamTableId) -> int | None:
    """Estimate how many rows a first load reads; None if the table is loaded or unknown."""
    statement = load("pgtrickle.catalog", "sql/queries/rows_to_load.sql")
    row = connection.execute(statement, {"id": table}).fetchone()
    return int(row[0]) if row and row[0] else None


def reported_progress(connection: Connection, table: StreamTableId) -> LoadProgress | None:
    """How far the load of a stream table is, as a sidecar reports it; None if no sidecar loads it."""
    statement = load("pgtrickle.catalog", "sql/queries/reported_loads.sql")
    row = connection.execute(statement, {"id": table}).fetchone()
    return LoadProgress(*row) if row else None
