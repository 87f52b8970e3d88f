"""The frontier: the PostgreSQL snapshot up to which a stream table includes the changes of its sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frontier:
    """A `pg_snapshot`. It sees transactions below `xmin`, and those below `xmax` not in `running`."""

    xmin: int
    xmax: int
    running: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Frontier:
        """Parse the text form of PostgreSQL, `xmin:xmax:id,id,…`."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(part) for part in running.split(",") if part))

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"

    def with_own(self, transaction: int) -> Frontier:
        """The same snapshot, extended by a transaction that began after it was taken.

        Other transactions that began in between may still commit, so they count as running.
        """
        between = frozenset(range(self.xmax, transaction))
        return Frontier(self.xmin, max(self.xmax, transaction + 1), self.running | between)

    def sees(self, transaction: int) -> bool:
        """Whether the snapshot includes the writes of this transaction."""
        if transaction < self.xmin:
            return True
        return transaction < self.xmax and transaction not in self.running

    def covers(self, earlier: Frontier) -> bool:
        """Whether this snapshot sees everything that an earlier one sees."""
        return self.xmax >= earlier.xmax and not any(earlier.sees(running) for running in self.running)
