"""What a sidecar tells of itself: how busy it is, how long a look takes, what its caches are worth."""

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
"""How much the newest look counts in the average of all."""


@dataclass(slots=True)
class Vitals:
    """Counters with a lock of their own: whoever counts never waits for the graph or for a worker."""

    id: UUID = field(default_factory=uuid4)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counts: Counter[str] = field(default_factory=Counter)
    _tick_ms: float = 0.0
    _slowest_tick_ms: float = 0.0

    def note_tick(self, milliseconds: float) -> None:
        """A look at the database took so long."""
        with self._lock:
            self._counts["ticks"] += 1
            is_first = self._counts["ticks"] == 1
            self._tick_ms += (milliseconds - self._tick_ms) * (1.0 if is_first else _WEIGHT)
            self._slowest_tick_ms = max(self._slowest_tick_ms, milliseconds)

    def note_refresh(self, action: Action) -> None:
        """A refresh ended well."""
        with self._lock:
            self._counts["refreshes"] += 1
            self._counts[f"refreshes_{action.value.lower()}"] += 1

    def count(self, what: str, number: int = 1) -> None:
        """Something else happened so many times."""
        with self._lock:
            self._counts[what] += number

    def values(self) -> dict[str, float]:
        """All of it, as of now."""
        with self._lock:
            return {
                **self._counts,
                "tick_ms": round(self._tick_ms, 3),
                "slowest_tick_ms": round(self._slowest_tick_ms, 3),
            }


def tell(
    connection: Connection,
    vitals: Vitals,
    *,
    workers: int,
    busy: int,
    queued: int,
    more: Mapping[str, object],
) -> None:
    """Write them where everybody can look, in a transaction of its own."""
    connection.execute(
        load("pgtrickle.scheduler.service", "sql/tell.sql"),
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


def leave(connection: Connection, vitals: Vitals) -> None:
    """This sidecar is gone."""
    connection.execute("delete from pgtrickle.pgt_sidecars where sidecar_id = %s", (vitals.id,))
