"""What the refreshes of this process have measured, for all of its workers; the history has it too."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from pgtrickle.catalog.outcomes import measured_refreshes
from pgtrickle.model.lru import LruCache
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.decide.cost_model import (
    CostLimits,
    Estimate,
    Experience,
    RefreshSample,
    Strategy,
    size_class,
)

REMEMBERED: Final = 200
"""How many refreshes are read from the history of a stream table that the process does not know yet."""
MAX_TABLES: Final = 10_000
"""How many stream tables the process remembers; others are read from the history again."""
MAX_ESTIMATES: Final = 50_000
ESTIMATE_SECONDS: Final = 600.0
"""How long an estimate is kept: tables grow."""
_CALIBRATION: Final = 15
"""How many estimates are compared with what was measured."""
_MOST: Final = 5.0
"""An estimate is corrected by this factor at most."""

_EstimateKey = tuple[StreamTableId, str, int]


def kind_of_change(relations: Iterable[RelationId]) -> str:
    """Which sources have changed, as the cost model tells windows apart."""
    return ",".join(sorted(map(str, relations))) or "only the clock"


@dataclass(slots=True)
class Costs:
    """The experience with each stream table. Safe to use from many threads."""

    limits: CostLimits = field(default_factory=CostLimits)
    _known: LruCache[StreamTableId, Experience] = field(default_factory=lambda: LruCache(MAX_TABLES))
    _estimates: LruCache[_EstimateKey, tuple[float, Estimate | None]] = field(
        default_factory=lambda: LruCache(MAX_ESTIMATES)
    )
    _ran: LruCache[tuple[StreamTableId, str], bool] = field(default_factory=lambda: LruCache(MAX_ESTIMATES))
    _ratios: dict[Strategy, deque[float]] = field(
        default_factory=lambda: {one: deque(maxlen=_CALIBRATION) for one in Strategy}
    )
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

    def was_full(self, table: StreamTableId) -> bool:
        """Whether the last refresh of a table that this process knows was full."""
        known = self._known.peek(table)
        return known is not None and known.was_full

    def add(self, table: StreamTableId, sample: RefreshSample) -> None:
        """Add a refresh. A table that is not known yet gets it from the history later."""
        if self._is_first_run(table, sample):
            # most of it was Spark planning the program, which the next refresh need not wait for
            return
        with self._lock:
            known = self._known.get(table)
            if known is not None:
                self._known.put(table, known.after(sample))
            self._compare(table, sample)

    def is_cold(self, table: StreamTableId, changed: str) -> bool:
        """Whether this process has not followed such a change of the table yet."""
        return self._ran.peek((table, changed)) is None

    def note_planned(self, table: StreamTableId, changed: str) -> None:
        """Note that Spark has planned the program for such a change of the table."""
        self._ran.put((table, changed), True)

    def estimate(
        self, table: StreamTableId, changed: str, rows: int, now: float
    ) -> tuple[bool, Estimate | None]:
        """Whether there is an estimate for such windows, and the estimate, corrected by what was measured."""
        kept = self._estimates.get((table, changed, size_class(rows)))
        if kept is None or now - kept[0] > ESTIMATE_SECONDS:
            return False, None
        found = kept[1]
        if found is None:
            return True, None
        with self._lock:
            full, delta = self._correction(Strategy.WITH_STATE), self._correction(Strategy.DELTA)
        return True, Estimate(
            found.full_ms * full, found.delta_ms * delta, found.fixed_ms * delta, found.is_worth_it
        )

    def keep_estimate(
        self, table: StreamTableId, changed: str, rows: int, now: float, found: Estimate | None
    ) -> None:
        """Keep an estimate for windows of this size; None if there can be none."""
        self._estimates.put((table, changed, size_class(rows)), (now, found))

    def _is_first_run(self, table: StreamTableId, sample: RefreshSample) -> bool:
        if sample.strategy is not Strategy.DELTA or not sample.changed:
            return False
        is_cold = self.is_cold(table, sample.changed)
        self._ran.put((table, sample.changed), True)
        return is_cold

    def _compare(self, table: StreamTableId, sample: RefreshSample) -> None:
        """Compare what was measured with its estimate."""
        kept = self._estimates.peek((table, sample.changed, size_class(sample.rows)))
        if kept is None or kept[1] is None or sample.strategy is Strategy.LOAD:
            return
        expected = kept[1].delta_ms if sample.strategy is Strategy.DELTA else kept[1].full_ms
        self._ratios[sample.strategy].append(sample.milliseconds / max(expected, 1.0))

    def _correction(self, strategy: Strategy) -> float:
        ratios = self._ratios[strategy]
        return min(max(median(ratios), 1 / _MOST), _MOST) if len(ratios) >= 3 else 1.0


def _from_history(connection: Connection, table: StreamTableId) -> Experience:
    known = Experience()
    for past in measured_refreshes(connection, table, REMEMBERED):
        sample = RefreshSample(
            Strategy(past.strategy), past.change_rows, past.milliseconds, past.ended_at, past.is_new_start
        )
        known = known.after(sample)
    return known
