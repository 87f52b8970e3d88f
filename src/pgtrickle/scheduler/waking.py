"""Letting the next writer of a source at rest wake us, so that its change need not wait for the next look.

A notification takes a lock that all committing writers share, so a source that is written all the time
must not send any: it is armed only after a while without writes, and disarmed by the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection

REST_SECONDS = 2.0
"""A source that nobody wrote to for so long is at rest."""
ARMED_SECONDS = 600.0
"""Writers stop notifying so long after the last sidecar has gone."""


@dataclass(slots=True)
class Alarms:
    """Which sources are armed. Looks report touches from one thread; another arms and disarms."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _touched_at: dict[RelationId, float] = field(default_factory=dict)
    _armed_at: dict[RelationId, float] = field(default_factory=dict)

    def touched(self, sources: Iterable[RelationId], now: float | None = None) -> bool:
        """These were written; whether any of them was armed."""
        clock = time.monotonic() if now is None else now
        with self._lock:
            self._touched_at.update((source, clock) for source in sources)
            return any(source in self._armed_at for source in sources)

    def touched_since(self, moment: float) -> set[RelationId]:
        """The sources that were written after a moment of the monotonic clock."""
        with self._lock:
            return {source for source, touched in self._touched_at.items() if touched >= moment}

    def keep(self, connection: Connection, sources: Iterable[RelationId], now: float | None = None) -> None:
        """Disarm what is written, arm what is at rest; at most one statement for each, autocommitted."""
        clock = time.monotonic() if now is None else now
        with self._lock:
            written = [s for s, armed in self._armed_at.items() if self._touched_at.get(s, 0.0) > armed]
            for source in written:
                del self._armed_at[source]
            resting = [
                source
                for source in sources
                if clock - self._touched_at.get(source, clock - REST_SECONDS) >= REST_SECONDS
                and clock - self._armed_at.get(source, -ARMED_SECONDS) >= ARMED_SECONDS / 2
            ]
            self._armed_at.update((source, clock) for source in resting)
        if written:
            connection.execute(
                "delete from pgtrickle_changes.wakes where source = any (%s::oid[])", (written,)
            )
        if resting:
            connection.execute(
                "insert into pgtrickle_changes.wakes (source, until)"
                " select source, now() + %s * interval '1 second' from unnest(%s::oid[]) source"
                " on conflict (source) do update set until = excluded.until",
                (ARMED_SECONDS, resting),
            )
