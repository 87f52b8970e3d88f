"""Lets the next writer of an idle source wake the sidecar, so that its change does not wait for a poll.

A notification takes a lock that all committing writers share, so a busy source must not send any. A source is
armed only after a while without writes, and disarmed by the first write. Arming takes an advisory lock in
the session that listens, so it ends with that session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection

REST_SECONDS = 2.0
"""A source without writes for this long is idle."""
_SLOTS = 128
"""As in `pgtrickle_internal.wake_slot`."""


@dataclass(slots=True)
class Wakeups:
    """When each source was last written. One thread reports writes; another arms and disarms."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _touched_at: dict[RelationId, float] = field(default_factory=dict)
    _armed: set[int] = field(default_factory=set)
    _can_be_woken: bool = False

    def note_writes(self, sources: Iterable[RelationId], now: float | None = None) -> None:
        """Note that these were written."""
        clock = time.monotonic() if now is None else now
        with self._lock:
            self._touched_at.update((source, clock) for source in sources)

    def touched_since(self, moment: float) -> set[RelationId]:
        """The sources that were written after a moment of the monotonic clock."""
        with self._lock:
            return {source for source, touched in self._touched_at.items() if touched >= moment}

    def begin(self, connection: Connection) -> None:
        """Start with a new listening session, which has armed nothing yet.

        A transaction that has sent a notification cannot be prepared for two-phase commit. Where the server
        allows prepared transactions, an application may rely on them, so no source is armed.
        """
        row = connection.execute("select current_setting('max_prepared_transactions')::integer").fetchone()
        assert row is not None
        self._armed, self._can_be_woken = set(), row[0] == 0

    def keep(self, connection: Connection, sources: Iterable[RelationId], now: float | None = None) -> None:
        """Disarm busy sources and arm idle ones, on the connection that listens."""
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
