"""How long each phase of a refresh took."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """What a refresh does at a moment."""

    READ = "read"
    """Reads what has changed, and the rows that the change affects."""
    COMPUTE = "compute"
    """Computes on Spark, or lets PostgreSQL evaluate the query. Tasks of Spark read inside of this phase."""
    APPLY = "apply"
    """Writes the result to the stream table."""


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """Milliseconds of each phase; `other_ms` is what belongs to none, such as decisions and checks."""

    read_ms: float = 0.0
    compute_ms: float = 0.0
    apply_ms: float = 0.0
    other_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """All phases together."""
        return self.read_ms + self.compute_ms + self.apply_ms + self.other_ms

    def __add__(self, more: PhaseTimes) -> PhaseTimes:
        return PhaseTimes(
            self.read_ms + more.read_ms,
            self.compute_ms + more.compute_ms,
            self.apply_ms + more.apply_ms,
            self.other_ms + more.other_ms,
        )

    def __truediv__(self, parts: int) -> PhaseTimes:
        return PhaseTimes(
            self.read_ms / parts, self.compute_ms / parts, self.apply_ms / parts, self.other_ms / parts
        )
