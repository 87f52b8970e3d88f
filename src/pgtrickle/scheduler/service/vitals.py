"""What a sidecar reports about itself: how busy it is, how long a poll takes, what its caches do."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from pgtrickle import __version__
from pgtrickle.model.stream_table import Action
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

FORGOTTEN_AFTER = "1 hour"
_WEIGHT = 0.1
"""The weight of the newest poll in the moving average."""


@dataclass(slots=True)
class Vitals:
    """Counters with a lock of their own, so counting never waits for the graph or for a worker."""

    id: UUID = field(default_factory=uuid4)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counts: Counter[str] = field(default_factory=Counter)
    _tick_ms: float = 0.0
    _all_ticks_ms: float = 0.0
    _slowest_tick_ms: float = 0.0

    def note_tick(self, milliseconds: float) -> None:
        """Record how long a poll took."""
        with self._lock:
            self._counts["ticks"] += 1
            is_first = self._counts["ticks"] == 1
            self._tick_ms += (milliseconds - self._tick_ms) * (1.0 if is_first else _WEIGHT)
            self._all_ticks_ms += milliseconds
            self._slowest_tick_ms = max(self._slowest_tick_ms, milliseconds)

    def note_refresh(self, action: Action) -> None:
        """Count a refresh that succeeded."""
        with self._lock:
            self._counts["refreshes"] += 1
            self._counts[f"refreshes_{action.value.lower()}"] += 1

    def count(self, what: str, number: int = 1) -> None:
        """Add to another counter."""
        with self._lock:
            self._counts[what] += number

    def values(self) -> dict[str, float]:
        """All counters and averages, as of now."""
        with self._lock:
            return {
                **self._counts,
                "tick_ms": round(self._tick_ms, 3),
                "slowest_tick_ms": round(self._slowest_tick_ms, 3),
                "all_ticks_ms": round(self._all_ticks_ms, 3),
            }


def publish(
    connection: Connection,
    vitals: Vitals,
    *,
    workers: int,
    busy: int,
    queued: int,
    more: Mapping[str, object],
) -> None:
    """Publish the vitals in the catalog, in a transaction of its own."""
    connection.execute(
        load("pgtrickle.scheduler.service", "sql/publish_vitals.sql"),
        {
            "id": vitals.id,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "version": __version__,
            "workers": workers,
            "busy": busy,
            "queued": queued,
            "vitals": json.dumps({**vitals.values(), **more}),
            "forgotten_after": FORGOTTEN_AFTER,
        },
    )


def withdraw(connection: Connection, vitals: Vitals) -> None:
    """Remove this sidecar from the catalog, and note when it was there."""
    connection.execute(load("pgtrickle.scheduler.service", "sql/withdraw.sql"), {"id": vitals.id})
