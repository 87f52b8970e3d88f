"""Letting the next writer of a source at rest wake us, so that its change need not wait for the next look.

A notification takes a lock that all committing writers share, so a source that is written all the time
must not send any: it is armed only after a while without writes, and disarmed by the first. What is
armed is an advisory lock of the session that listens, so it ends with it.
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
_SLOTS = 128
"""As in `pgtrickle_internal.wake_slot`."""


@dataclass(slots=True)
class Wakeups:
    """Which sources were written when. Looks report touches from one thread; another arms and disarms."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _touched_at: dict[RelationId, float] = field(default_factory=dict)
    _armed: set[int] = field(default_factory=set)
    _can_be_woken: bool = False

    def touched(self, sources: Iterable[RelationId], now: float | None = None) -> None:
        """These were written."""
        clock = time.monotonic() if now is None else now
        with self._lock:
            self._touched_at.update((source, clock) for source in sources)

    def touched_since(self, moment: float) -> set[RelationId]:
        """The sources that were written after a moment of the monotonic clock."""
        with self._lock:
            return {source for source, touched in self._touched_at.items() if touched >= moment}

    def begin(self, connection: Connection) -> None:
        """A session that listens begins, and has armed nothing yet.

        A transaction that has notified cannot be prepared for a commit in two phases. Where the server
        allows those, an application may rely on it, and nobody is asked to wake us.
        """
        row = connection.execute("select current_setting('max_prepared_transactions')::integer").fetchone()
        assert row is not None
        self._armed, self._can_be_woken = set(), row[0] == 0

    def keep(self, connection: Connection, sources: Iterable[RelationId], now: float | None = None) -> None:
        """Disarm what is written, and arm what is at rest, on the connection that listens."""
        if not self._can_be_woken:
            return
        clock = time.monotonic() if now is None else now
        busy = {source % _SLOTS for source in self.touched_since(clock - REST_SECONDS)}
        resting = {source % _SLOTS for source in sources} - busy
        if written := sorted(self._armed & busy):
            connection.execute(
                "select pg_advisory_unlock(pgtrickle_internal.wake_lock(), slot) from unnest(%s::integer[])"
                " slot",
                (written,),
            )
            self._armed -= busy
        if new := sorted(resting - self._armed):
            rows = connection.execute(
                "select slot from unnest(%s::integer[]) slot"
                " where pg_try_advisory_lock(pgtrickle_internal.wake_lock(), slot)",
                (new,),
            )
            self._armed.update(slot for (slot,) in rows)
