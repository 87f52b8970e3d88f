"""The result of comparing stream tables with their queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.model.errors import Suspended
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record


@dataclass(frozen=True, slots=True, repr=False)
class VerifiedTable(Record):
    """A stream table that equals its query."""

    name: RelationName
    rows: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class UncomparedTable:
    """A stream table that cannot be compared, because it is suspended or reads one that is."""

    name: RelationName
    reason: str


ComparisonResult = VerifiedTable | UncomparedTable


def require_compared(found: Sequence[ComparisonResult]) -> list[VerifiedTable]:
    """The stream tables that equal their queries; raise if one could not be compared."""
    equal = [table for table in found if isinstance(table, VerifiedTable)]
    skipped = [table for table in found if isinstance(table, UncomparedTable)]
    if skipped:
        others = f". The other {len(equal)} equal theirs" if equal else ""
        raise Suspended(
            "; ".join(f"{table.name} cannot be compared with its query: {table.reason}" for table in skipped)
            + others,
            hint="to resume one that is suspended, run select pgtrickle.resume_stream_table(name)",
        )
    return equal
