"""Which stream tables may have ended Spark, so that none of them ends it again and again.

All that computed when Spark died are suspects, and from then on suspects compute one at a time. One that
computed alone when Spark ran out of memory, or has been there too often when it died, is isolated: PostgreSQL
evaluates its query without Spark, each time for longer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.model.stream_table import StreamTableId

MOST_DEATHS: Final = 3
"""So many deaths in a row isolate a stream table that computed during each of them."""
MOST_OUT_OF_MEMORY: Final = 2
FIRST_SECONDS = 60.0
"""How long the first isolation of a stream table lasts."""
GROWTH: Final = 4.0
LONGEST_SECONDS: Final = 3600.0


@dataclass(slots=True)
class Suspects:
    """Deaths of Spark for each stream table since it last computed well."""

    _deaths: dict[StreamTableId, int] = field(default_factory=dict)
    _isolations: dict[StreamTableId, int] = field(default_factory=dict)
    _until: dict[StreamTableId, float] = field(default_factory=dict)

    def note_death(
        self, computing: Collection[frozenset[StreamTableId]], *, is_out_of_memory: bool, clock: float
    ) -> frozenset[StreamTableId]:
        """Spark died while these units computed; returns the stream tables that are isolated for it."""
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

    def note_success(self, tables: Collection[StreamTableId]) -> None:
        """These have computed well."""
        for table in tables:
            self._deaths.pop(table, None)

    def is_suspect(self, table: StreamTableId) -> bool:
        """Whether it computed when Spark died, and has not computed well since."""
        return table in self._deaths

    def is_isolated(self, table: StreamTableId, clock: float) -> bool:
        """Whether it must not compute on Spark now."""
        return clock < self._until.get(table, clock)

    def _isolate(self, table: StreamTableId, clock: float) -> None:
        times = self._isolations[table] = self._isolations.get(table, 0) + 1
        self._until[table] = clock + min(FIRST_SECONDS * GROWTH ** min(times - 1, 16), LONGEST_SECONDS)
        # the next death counts from the start
        self._deaths.pop(table, None)
