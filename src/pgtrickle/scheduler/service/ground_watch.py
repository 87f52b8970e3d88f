"""Polls what all stream tables rely on, about once a second, in a thread of its own."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pgtrickle.catalog.dependencies import forget_dropped, poll_ground, settle
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.errors import (
    Busy,
    ConnectionFailed,
    PgTrickleError,
    RightLost,
    SourceChanged,
    UnknownStreamTable,
)
from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.story import Failure
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.failures import note_failure
from pgtrickle.scheduler.service.unit_refresh import RefreshEvent

WATCH_SECONDS = 1.0
"""Seconds between the starts of two polls; a change is noticed within two of them."""
INITIATOR = "ground"


@dataclass(slots=True)
class GroundWatch:
    """Polls the ground of all stream tables while the dispatcher lives."""

    dispatcher: Dispatcher
    _seen: str | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._serve, name="ground", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def poll(self, connection: Connection) -> None:
        """Find what has changed, and settle each stream table that relies on it; needs autocommit."""
        snapshot, moved = poll_ground(connection, self._seen)
        self._seen = None if moved else snapshot
        if moved:
            forget_dropped(connection)
        for table in moved:
            if self._stop.is_set():
                return
            self._settle(connection, table)

    def _settle(self, connection: Connection, table_id: StreamTableId) -> None:
        started = datetime.now(UTC)
        try:
            settle(connection, table_id, waits=False)
        except Busy:
            # the running refresh checks the ground before it commits, and the next poll checks it again
            return
        except (SourceChanged, RightLost) as error:
            with suppress(UnknownStreamTable):
                table = stream_table(connection, table_id)
                if table.status is not Status.SUSPENDED:
                    note_failure(connection, Failure(table, error), started, INITIATOR)
                self.dispatcher.on_event(RefreshEvent(table.name, datetime.now(UTC), error=error))

    def _serve(self) -> None:
        try:
            pause = 0.0
            while not self._stop.wait(pause):
                started = time.monotonic()
                with suppress(Busy), self.dispatcher.engine.pool.autocommitting() as connection:
                    self.poll(connection)
                pause = max(0.0, started + WATCH_SECONDS - time.monotonic())
        except (DatabaseError, PgTrickleError) as error:
            self.dispatcher.report(
                ConnectionFailed(
                    f"watching the ground failed: {str(error).strip()}", hint="the sidecar tries again"
                )
            )
