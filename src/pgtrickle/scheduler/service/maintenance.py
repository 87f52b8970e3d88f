"""Maintenance beside the polls, in a thread of its own: buffers, triggers, history, and the vitals."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pgtrickle.model.errors import Busy, ConnectionFailed, PgTrickleError
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.scheduler.service.dispatcher import STALE_SECONDS, Behind, Dispatcher
from pgtrickle.scheduler.service.maintenance_tasks import (
    capture_waiting,
    repair_captures,
    rotate_buffers,
    tidy,
)
from pgtrickle.scheduler.service.pending_changes import pending_tables
from pgtrickle.scheduler.service.publication_alerts import watch_publications
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits, note_buffer_sizes, note_stale_tables
from pgtrickle.scheduler.service.vitals import withdraw

STEP_SECONDS = 0.5
ROTATE_SECONDS = 2.0
TIDY_SECONDS = 30.0
ALERT_SECONDS = 5.0
"""The shortest time between two checks of what an alert is sent for when it passes a limit."""
GAP_SECONDS = 2.0
"""The shortest time between two searches for gaps in capture."""
CHECK_SECONDS = 60.0
"""How often every buffer is checked, in case a change left no trace in the touched tables."""


@dataclass(slots=True)
class Maintenance:
    """Maintains a database while the dispatcher lives."""

    dispatcher: Dispatcher
    publish: Callable[[Connection], None]
    """Reports the vitals of the sidecar."""
    limits: AlertLimits = field(default_factory=AlertLimits)
    stays: bool = False
    """Whether the sidecar goes on to serve the database after this maintenance."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _gap_pause: float = GAP_SECONDS
    _alert_pause: float = ALERT_SECONDS
    _last: dict[str, float] = field(default_factory=dict)
    _unrotated: set[RelationId] = field(default_factory=set)
    _snapshots: deque[tuple[float, Frontier]] = field(default_factory=deque)

    def start(self) -> None:
        """Start the thread."""
        self._last = {"check": time.monotonic()}
        self._thread = threading.Thread(target=self._serve, name="maintenance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        try:
            with suppress(Busy), self.dispatcher.engine.pool.autocommitting() as connection:
                # users see at once that the database is served
                self.publish(connection)
            while not self._stop.wait(STEP_SECONDS):
                with suppress(Busy), self.dispatcher.engine.pool.autocommitting() as connection:
                    self.step(connection)
            if not self.stays:
                with self.dispatcher.engine.pool.autocommitting() as connection:
                    withdraw(connection, self.dispatcher.vitals)
        except (DatabaseError, PgTrickleError) as error:
            self.dispatcher.report(
                ConnectionFailed(f"maintenance failed: {str(error).strip()}", hint="the sidecar tries again")
            )

    def step(self, connection: Connection) -> None:
        """Do what is due now."""
        capture_waiting(connection)
        if self._has_come("rotate", ROTATE_SECONDS):
            # only buffers of written sources grow; all of them are checked from time to time
            written = (
                self.dispatcher.wakeups.touched_since(time.monotonic() - 2 * ROTATE_SECONDS) | self._unrotated
            )
            is_all = self._has_come("rotate all", CHECK_SECONDS)
            self._unrotated = rotate_buffers(connection, None if is_all else written)
            self._empty_touched(connection)
            self.publish(connection)
        if self._has_come("capture", self._gap_pause):
            started = time.monotonic()
            repair_captures(connection)
            # checking thousands of sources takes a while, so the pause grows with it
            self._gap_pause = max(GAP_SECONDS, 20 * (time.monotonic() - started))
        if self._has_come("alerts", self._alert_pause):
            started = time.monotonic()
            note_buffer_sizes(connection, self.limits)
            note_stale_tables(connection, self.dispatcher.definitions, self.limits)
            watch_publications(connection, self.limits, self.dispatcher.on_event)
            self._alert_pause = max(ALERT_SECONDS, 20 * (time.monotonic() - started))
        if self._has_come("tidy", TIDY_SECONDS):
            tidy(connection)
        if self._has_come("check", CHECK_SECONDS):
            self.dispatcher.report(Behind(*pending_tables(connection, self.dispatcher.definitions)))

    def _empty_touched(self, connection: Connection) -> None:
        """Truncate what all sidecars have seen; one that polled too long ago notices it and starts over."""
        clock = time.monotonic()
        if self.dispatcher.seen is not None:
            self._snapshots.append((clock, self.dispatcher.seen))
        seen = None
        while self._snapshots and clock - self._snapshots[0][0] > 2 * STALE_SECONDS:
            seen = self._snapshots.popleft()[1]
        if seen is not None:
            # only the side that is not being written, so that no writer waits
            connection.execute(
                "select pgtrickle_internal.empty_touched(1 - pgtrickle_internal.side_written(),"
                " %s::pg_snapshot)",
                (str(seen),),
            )

    def _has_come(self, what: str, seconds: float) -> bool:
        clock = time.monotonic()
        if clock - self._last.get(what, -seconds) < seconds:
            return False
        self._last[what] = clock
        return True
