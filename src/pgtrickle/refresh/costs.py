"""What refreshes of this process have measured, for all of its workers; saved as the refresh history."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.catalog.outcomes import measured_refreshes
from pgtrickle.model.lru import LruCache
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.predicting import Experience, Limits, Sample, Strategy

REMEMBERED: Final = 200
"""So many refreshes of a stream table are looked at when a process begins to know it."""
MAX_TABLES: Final = 10_000
"""Of so many stream tables the process knows the costs; others are read from the history again."""


@dataclass(slots=True)
class Costs:
    """The experience with each stream table. Safe to use from many threads."""

    limits: Limits = field(default_factory=Limits)
    _known: LruCache[StreamTableId, Experience] = field(default_factory=lambda: LruCache(MAX_TABLES))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, connection: Connection, table: StreamTableId) -> Experience:
        """What is known of a table; the first time, from its history."""
        known = self._known.get(table)
        if known is None:
            known = _replayed(connection, table)
            self._known.put(table, known)
        return known

    def add(self, table: StreamTableId, sample: Sample) -> None:
        """One more refresh; of a table that nobody has asked about, the history will tell it."""
        with self._lock:
            known = self._known.get(table)
            if known is not None:
                self._known.put(table, known.after(sample))


def _replayed(connection: Connection, table: StreamTableId) -> Experience:
    known = Experience()
    for past in measured_refreshes(connection, table, REMEMBERED):
        sample = Sample(
            Strategy(past.strategy), past.change_rows, past.milliseconds, past.ended_at, past.is_new_start
        )
        known = known.after(sample)
    return known
