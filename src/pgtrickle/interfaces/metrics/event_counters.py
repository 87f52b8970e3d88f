"""Counts what the events of a sidecar tell. Counting takes microseconds and waits for nobody."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pgtrickle.interfaces.metrics.table_labels import TableLabels
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent

BOUNDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0),
)
"""Upper bounds of the buckets of all histograms, in seconds."""


@dataclass(slots=True)
class Histogram:
    """How many durations fell into each bucket, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> Iterator[tuple[str, float]]:
        """Each upper bound, and how many durations were not above it."""
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self.counts, strict=True):
            total += count
            yield bound, total

    def copy(self) -> Histogram:
        """The same numbers, which do not change any more."""
        return Histogram(self.counts.copy(), self.sum)


@dataclass(slots=True)
class EventCounts:
    """What was counted so far, by the labels of each metric."""

    refreshes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    outages: Counter[str] = field(default_factory=Counter)
    durations: dict[str, Histogram] = field(default_factory=dict)
    phases: dict[str, Histogram] = field(default_factory=dict)


class EventCounters:
    """Counts events from any thread."""

    def __init__(self, max_tables: int) -> None:
        self._lock = threading.Lock()
        self._labels = TableLabels(max_tables)
        self._counts = EventCounts()

    def note(self, event: RefreshEvent) -> None:
        """Count an event."""
        with self._lock:
            if event.outcome is not None:
                self._note_refresh(event.outcome)
            elif event.error is not None and event.name.name:
                attempted = strategy(event.attempted) if event.attempted else "unknown"
                label = self._labels.label(event.name, 0.0, is_failure=True)
                self._counts.refreshes[label, attempted, "failed"] += 1
                self._counts.failures[event.error.code] += 1
            elif event.error is not None:
                self._counts.outages[event.subject.lower()] += 1

    def counts(self) -> EventCounts:
        """A copy of everything."""
        with self._lock:
            now = self._counts
            return EventCounts(
                now.refreshes.copy(),
                now.rows.copy(),
                now.seconds.copy(),
                now.failures.copy(),
                now.outages.copy(),
                {name: histogram.copy() for name, histogram in now.durations.items()},
                {name: histogram.copy() for name, histogram in now.phases.items()},
            )

    def shown(self) -> frozenset[RelationName]:
        """The stream tables with series of their own."""
        with self._lock:
            return frozenset(self._labels.shown)

    def limit_tables(self, max_tables: int) -> None:
        """Give series to at most this many; those beyond end with the next choice."""
        with self._lock:
            self._labels.limit = max_tables

    def choose_tables(self, existing: Collection[RelationName]) -> None:
        """Choose again which stream tables have series of their own; those of others end."""
        with self._lock:
            ended = self._labels.choose(existing)
            if not ended:
                return
            counts = self._counts
            counts.refreshes = Counter({k: n for k, n in counts.refreshes.items() if k[0] not in ended})
            counts.rows = Counter({k: n for k, n in counts.rows.items() if k[0] not in ended})
            counts.seconds = {k: n for k, n in counts.seconds.items() if k not in ended}

    def _note_refresh(self, outcome: RefreshOutcome) -> None:
        counts, seconds = self._counts, outcome.milliseconds / 1000
        label, did = self._labels.label(outcome.name, seconds), strategy(outcome.action)
        counts.refreshes[label, did, "completed"] += 1
        counts.seconds[label] = counts.seconds.get(label, 0.0) + seconds
        counts.durations.setdefault(did, Histogram()).add(seconds)
        if outcome.action is Action.NO_DATA:
            return
        counts.rows[label, "inserted"] += outcome.rows_inserted
        counts.rows[label, "deleted"] += outcome.rows_deleted
        for phase in ("wait", "read", "compute", "apply", "commit"):
            milliseconds: float | None = getattr(outcome, f"{phase}_ms")
            if milliseconds:
                counts.phases.setdefault(phase, Histogram()).add(milliseconds / 1000)


def strategy(action: Action) -> str:
    """What a refresh did, as a label."""
    return action.value.lower()
