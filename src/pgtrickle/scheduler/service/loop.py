"""The sidecar's loop: poll, decide, dispatch, wait; it reconnects when the connection is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pgtrickle.catalog.install import check_original
from pgtrickle.model.errors import ConnectionFailed
from pgtrickle.model.names import RelationName
from pgtrickle.model.settings import MAX_CONSECUTIVE_ERRORS, WORKER_POOL_SIZE
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.comparisons import Comparisons
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.ground_watch import GroundWatch
from pgtrickle.scheduler.service.listener import Listener
from pgtrickle.scheduler.service.load_watch import LoadWatch
from pgtrickle.scheduler.service.maintenance import Maintenance
from pgtrickle.scheduler.service.outages import Outage
from pgtrickle.scheduler.service.previews import Previews
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits
from pgtrickle.scheduler.service.unit_refresh import EventKind, RefreshEvent
from pgtrickle.scheduler.service.vitals import Vitals

__all__ = ["POLL_SECONDS", "EventKind", "Loop", "RefreshEvent"]

POLL_SECONDS = 0.1
"""How long a change waits for the next poll if no notification wakes the sidecar."""
MIN_PAUSE_SECONDS = 0.02
"""The shortest time between two polls; messages of workers are handled meanwhile."""
RECONNECT_SECONDS = 1.0


@dataclass(slots=True)
class Loop:
    """One sidecar. Any number of them can serve one database."""

    engine: Engine
    on_event: Callable[[RefreshEvent], None]
    max_errors: int = MAX_CONSECUTIVE_ERRORS.default
    worker_pool_size: int = WORKER_POOL_SIZE.default
    listen_dsn: str | None = None
    alert_limits: AlertLimits = field(default_factory=AlertLimits)
    wake: threading.Event = field(default_factory=threading.Event)
    vitals: Vitals = field(default_factory=Vitals)
    outage: Outage = field(default_factory=Outage, init=False)
    current: Dispatcher | None = field(default=None, init=False)
    """The dispatcher of now, or of before an outage; other threads read from it what it knows."""

    def serve(self, stop: threading.Event) -> None:
        """Poll until stopped; raises in a copy of a database, and beside a catalog of another version."""
        while not stop.is_set():
            try:
                with self.dispatcher() as dispatcher:
                    self._run(dispatcher, stop)
            except (ConnectionFailed, DatabaseError) as error:
                self._note_outage(error if isinstance(error, ConnectionFailed) else _lost(error))
                stop.wait(RECONNECT_SECONDS)

    @contextmanager
    def dispatcher(self) -> Iterator[Dispatcher]:
        """A dispatcher on a connection of its own; leaving it waits for running refreshes."""
        with ExitStack() as stack:
            connection = stack.enter_context(self.engine.pool.autocommitting())
            # the schemas may have been upgraded or removed since, or this is another server
            check_original(connection)
            dispatcher = Dispatcher(
                self.engine,
                connection,
                self.on_event,
                self.vitals,
                self.worker_pool_size,
                self.max_errors,
                self.wake,
            )
            self.current = dispatcher
            stack.callback(dispatcher.close)
            if dsn := self._listening_address():
                stack.enter_context(_listener(dsn, self.wake, dispatcher))
            comparisons = Comparisons(self.engine, self.vitals.id)
            stack.callback(comparisons.close)
            dispatcher.on_comparisons = comparisons.wake
            previews = Previews(self.engine, self.vitals.id)
            stack.callback(previews.close)
            dispatcher.on_previews = previews.wake
            maintenance = Maintenance(dispatcher, self.alert_limits)
            maintenance.start()
            stack.callback(maintenance.close)
            watch = GroundWatch(dispatcher)
            watch.start()
            stack.callback(watch.close)
            loads = LoadWatch(dispatcher)
            loads.start()
            stack.callback(loads.close)
            yield dispatcher

    def _listening_address(self) -> str | None:
        """The address to listen at; None behind a pooler in transaction mode, which loses LISTEN."""
        if self.listen_dsn is not None:
            return self.listen_dsn
        return None if self.engine.pool.is_pooled else self.engine.dsn

    def _note_outage(self, error: ConnectionFailed) -> None:
        """Report that the database cannot be reached, once until it can be reached again."""
        if self.outage.begin(time.monotonic()):
            self.on_event(RefreshEvent(RelationName("", ""), datetime.now(UTC), error=error))

    def _note_connected(self) -> None:
        """Report the end of an outage."""
        took = self.outage.end(time.monotonic())
        if took is not None:
            note = f"connected again after {took:.1f} s"
            self.on_event(RefreshEvent(RelationName("", ""), datetime.now(UTC), note=note, seconds=took))

    def _run(self, dispatcher: Dispatcher, stop: threading.Event) -> None:
        dispatcher.tick()
        self._note_connected()
        while not stop.is_set():
            was_woken = self.wake.wait(dispatcher.seconds_to_timer(POLL_SECONDS))
            self.wake.clear()
            if was_woken and dispatcher.seconds_since_poll() < MIN_PAUSE_SECONDS:
                dispatcher.handle_inbox()
                # the wake-up may have announced a change
                stop.wait(MIN_PAUSE_SECONDS - dispatcher.seconds_since_poll())
            dispatcher.tick()
            self._note_connected()


def _listener(dsn: str, wake: threading.Event, dispatcher: Dispatcher) -> Listener:
    def step(connection: Connection) -> None:
        dispatcher.wakeups.keep(connection, dispatcher.definitions.readers.keys())

    return Listener(dsn, wake, began=dispatcher.wakeups.begin, step=step)


def _lost(error: DatabaseError) -> ConnectionFailed:
    lost = ConnectionFailed(
        f"polling the database failed: {str(error).strip()}", hint="the sidecar tries again"
    )
    lost.__cause__ = error
    return lost
