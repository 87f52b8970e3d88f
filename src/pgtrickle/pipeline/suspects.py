"""Finds the stream tables that kill Spark, so that none of them does it again and again.

All tables that were computing when Spark died are suspects, and suspects compute one at a time. A table that
computed alone when Spark ran out of memory, or that was computing at too many deaths, is isolated: PostgreSQL
evaluates its query without Spark for a while, each time for longer.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from typing import Final

TableKey = Hashable
"""A stream table of one of the databases that use this Spark."""
MOST_DEATHS: Final = 3
"""Isolate a stream table that was computing during this many consecutive deaths."""
MOST_OUT_OF_MEMORY: Final = 2
FIRST_SECONDS = 60.0
"""How long the first isolation of a stream table lasts."""
GROWTH: Final = 4.0
LONGEST_SECONDS: Final = 3600.0


@dataclass(slots=True)
class Suspects:
    """For each stream table, the deaths of Spark since it last computed successfully."""

    _deaths: dict[TableKey, int] = field(default_factory=dict)
    _isolations: dict[TableKey, int] = field(default_factory=dict)
    _until: dict[TableKey, float] = field(default_factory=dict)

    def note_death(
        self, computing: Collection[frozenset[TableKey]], *, is_out_of_memory: bool, clock: float
    ) -> frozenset[TableKey]:
        """Note that Spark died while these units computed; returns the stream tables now isolated."""
        most = MOST_OUT_OF_MEMORY if is_out_of_memory else MOST_DEATHS
        if is_out_of_memory and len(computing) == 1:
            most = 1
        isolated = set()
        for table in frozenset().union(*computing):
            deaths = self._deaths[table] = self._deaths.get(table, 0) + 1
            if deaths >= most:
                isolated.add(table)
                self._isolate(table, clock)
        return frozenset(isolated)

    def note_success(self, tables: Collection[TableKey]) -> None:
        """Note that these computed successfully."""
        for table in tables:
            self._deaths.pop(table, None)

    def is_suspect(self, table: TableKey) -> bool:
        """Whether it was computing when Spark died, and has not succeeded since."""
        return table in self._deaths

    def is_isolated(self, table: TableKey, clock: float) -> bool:
        """Whether it must not compute on Spark now."""
        return clock < self._until.get(table, clock)

    def _isolate(self, table: TableKey, clock: float) -> None:
        times = self._isolations[table] = self._isolations.get(table, 0) + 1
        self._until[table] = clock + min(FIRST_SECONDS * GROWTH ** min(times - 1, 16), LONGEST_SECONDS)
        # count from zero again
        self._deaths.pop(table, None)
