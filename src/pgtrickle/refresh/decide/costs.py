"""What the refreshes of this process have measured, for all of its workers; the history has it too."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.catalog.outcomes import measured_refreshes
from pgtrickle.model.lru import LruCache
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.decide.cost_model import CostLimits, Experience, RefreshSample, Strategy

REMEMBERED: Final = 200
"""How many refreshes are read from the history of a stream table that the process does not know yet."""
MAX_TABLES: Final = 10_000
"""How many stream tables the process remembers; others are read from the history again."""


@dataclass(slots=True)
class Costs:
    """The experience with each stream table. Safe to use from many threads."""

    limits: CostLimits = field(default_factory=CostLimits)
    _known: LruCache[StreamTableId, Experience] = field(default_factory=lambda: LruCache(MAX_TABLES))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, connection: Connection, table: StreamTableId) -> Experience:
        """The experience with a table; read from its history the first time."""
        known = self._known.get(table)
        if known is not None:
            return known
        past = _from_history(connection, table)
        with self._lock:
            # another thread may have read the history too, and added a refresh to it
            known = self._known.get(table) or past
            self._known.put(table, known)
        return known

    def add(self, table: StreamTableId, sample: RefreshSample) -> None:
        """Add a refresh. A table that is not known yet gets it from the history later."""
        with self._lock:
            known = self._known.get(table)
            if known is not None:
                self._known.put(table, known.after(sample))


def _from_history(connection: Connection, table: StreamTableId) -> Experience:
    known = Experience()
    for past in measured_refreshes(connection, table, REMEMBERED):
        sample = RefreshSample(
            Strategy(past.strategy), past.change_rows, past.milliseconds, past.ended_at, past.is_new_start
        )
        known = known.after(sample)
    return known
