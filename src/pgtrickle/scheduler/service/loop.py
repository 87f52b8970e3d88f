"""The loop of one database: poll, decide, dispatch, wait; it reconnects when the connection is lost.

A database that is disabled is left alone, and one in which nothing happens may rest (`rest.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum

from pgtrickle.catalog.install import check_original
from pgtrickle.model.errors import ConnectionFailed
from pgtrickle.model.settings import MAX_CONSECUTIVE_ERRORS, WORKER_POOL_SIZE
from pgtrickle.postgres.connection import Connection, DatabaseError, connect
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.attached_watch import AttachedWatch
from pgtrickle.scheduler.service.budgeting import Budgeting
from pgtrickle.scheduler.service.comparisons import Comparisons
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.ground_watch import GroundWatch
from pgtrickle.scheduler.service.listener import Listener
from pgtrickle.scheduler.service.load_watch import LoadWatch
from pgtrickle.scheduler.service.maintenance import Maintenance
from pgtrickle.scheduler.service.outages import Outage
from pgtrickle.scheduler.service.previews import Previews
from pgtrickle.scheduler.service.rest import rest
from pgtrickle.scheduler.service.slot_alerts import SlotAlerts, SlotLimits
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits
from pgtrickle.scheduler.service.unit_refresh import EventKind, RefreshEvent, database_event
from pgtrickle.scheduler.service.vitals import Vitals, publish, withdraw
from pgtrickle.scheduler.service.wal_watch import WalWatch
from pgtrickle.scheduler.service.worker_shares import WorkerShare

__all__ = ["POLL_SECONDS", "EventKind", "Loop", "LoopState", "RefreshEvent"]

POLL_SECONDS = 0.1
"""How long a change waits for the next poll if no notification wakes the sidecar."""
MIN_PAUSE_SECONDS = 0.02
"""The shortest time between two polls; messages of workers are handled meanwhile."""
RECONNECT_SECONDS = 1.0
LONGEST_RECONNECT_SECONDS = 8.0
"""The longest pause before another attempt to connect, if others are served meanwhile."""
DISABLED_SECONDS = 2.0
"""How often to check whether a disabled database is enabled again."""


AWAKE_SECONDS = 5.0
"""How long before a timer fires a database at rest is served again."""


class LoopState(Enum):
    """What a loop does about its database."""

    STARTING = "starting"
    SERVING = "serving"
    RESTING = "resting"
    DISABLED = "disabled"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


@dataclass(slots=True)
class Loop:
    """A sidecar of one database. Any number of them can serve it.

    If the process serves several databases, `share` is the part of its workers that this one has, and
    `about_process` what it reports of the others. After `idle_after` seconds without any event, the database
    rests; None is never.
    """

    engine: Engine
    on_event: Callable[[RefreshEvent], None]
    max_errors: int = MAX_CONSECUTIVE_ERRORS.default
    worker_pool_size: int = WORKER_POOL_SIZE.default
    listen_dsn: str | None = None
    alert_limits: AlertLimits = field(default_factory=AlertLimits)
    share: WorkerShare | None = None
    idle_after: float | None = None
    budget: Budgeting | None = None
    """The CPU time that all databases of the process share; None is no limit."""
    about_process: Callable[[], Mapping[str, object]] = dict
    wake: threading.Event = field(default_factory=threading.Event)
    vitals: Vitals = field(default_factory=Vitals)
    outage: Outage = field(default_factory=Outage, init=False)
    _maintenance: Maintenance | None = field(default=None, init=False)
    _attached: AttachedWatch | None = field(default=None, init=False)
    _wal: WalWatch | None = field(default=None, init=False)
    current: Dispatcher | None = field(default=None, init=False)
    """The dispatcher of now, or of before an outage; other threads read from it what it knows."""
    state: LoopState = field(default=LoopState.STARTING, init=False)

    def serve(self, stop: threading.Event) -> None:
        """Poll until stopped; raises in a copy of a database, and beside a catalog of another version."""
        pause = RECONNECT_SECONDS
        while not stop.is_set():
            try:
                self._serve_once(stop)
                pause = RECONNECT_SECONDS
            except (ConnectionFailed, DatabaseError) as error:
                self.state = LoopState.UNREACHABLE
                self._note_outage(error if isinstance(error, ConnectionFailed) else _lost(error))
                stop.wait(pause)
                if self.share is not None:
                    pause = min(2 * pause, LONGEST_RECONNECT_SECONDS)

    def _serve_once(self, stop: threading.Event) -> None:
        """Dispatch until there is a reason not to, and wait until that has passed."""
        with self.dispatcher() as dispatcher:
            self._run(dispatcher, stop)
        if stop.is_set():
            return
        if not dispatcher.is_enabled:
            self._wait_until_enabled(stop)
        else:
            self._rest(dispatcher, stop)

    def _rest(self, dispatcher: Dispatcher, stop: threading.Event) -> None:
        assert dispatcher.seen is not None
        self.state = LoopState.RESTING
        # idle connections are no use now
        self.engine.pool.renew()
        with self.engine.pool.autocommitting() as connection:
            rest(
                connection,
                dispatcher.seen,
                dispatcher.seconds_to_timer(float("inf")) - AWAKE_SECONDS,
                stop,
                self._publish,
                has_views=dispatcher.definitions.has_views,
            )
            if stop.is_set():
                withdraw(connection, self.vitals)

    def _wait_until_enabled(self, stop: threading.Event) -> None:
        """Keep no connection meanwhile, so that the database can even be dropped."""
        self.state = LoopState.DISABLED
        note = "disabled by set_enabled(false), and left alone until it is enabled"
        self.on_event(database_event(note=note))
        self.engine.pool.renew()
        while not stop.wait(DISABLED_SECONDS):
            with connect(self.engine.dsn, autocommit=True) as connection:
                check_original(connection)
                row = connection.execute("select pgtrickle.is_enabled()").fetchone()
            if row is not None and row[0]:
                self.on_event(database_event(note="enabled again"))
                return

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
                self.share,
                budget=self.budget,
            )
            self.current = dispatcher
            self.state = LoopState.SERVING
            stack.callback(dispatcher.close)
            if dsn := self._listening_address():
                stack.enter_context(_listener(dsn, self.wake, dispatcher))
            comparisons = Comparisons(self.engine, self.vitals.id)
            stack.callback(comparisons.close)
            dispatcher.on_comparisons = comparisons.wake
            previews = Previews(self.engine, self.vitals.id)
            stack.callback(previews.close)
            dispatcher.on_previews = previews.wake
            maintenance = Maintenance(dispatcher, self._publish, self.alert_limits)
            maintenance.start()
            stack.callback(maintenance.close)
            self._maintenance = maintenance
            watch = GroundWatch(dispatcher)
            watch.start()
            stack.callback(watch.close)
            limits = self.alert_limits
            slot_limits = SlotLimits(limits.slot_lag_warning_mb, limits.max_slot_wal_mb)
            attached = AttachedWatch(dispatcher, slot_limits)
            attached.start()
            stack.callback(attached.close)
            self._attached = attached
            wal = WalWatch(dispatcher, SlotAlerts(limits.slot_lag_warning_mb, limits.max_slot_wal_mb))
            wal.start()
            stack.callback(wal.close)
            self._wal = wal
            loads = LoadWatch(dispatcher)
            loads.start()
            stack.callback(loads.close)
            yield dispatcher

    def _publish(self, connection: Connection) -> None:
        """Report the vitals."""
        dispatcher, engine = self.current, self.engine
        assert dispatcher is not None
        more = {
            "behind": dispatcher.behind(),
            **dispatcher.cpu(),
            **engine.cache_counters(),
            "waits_for_spark": engine.supply.why_waiting,
            "loading": dispatcher.loads,
            "in_place": engine.supply.in_place,
            "temp_files": engine.pool.temp_files.value if engine.pool.temp_files else None,
            **self.about_process(),
        }
        publish(connection, self.vitals, **dispatcher.workload(), more=more)

    def _listening_address(self) -> str | None:
        """The address to listen at; None behind a pooler in transaction mode, which loses LISTEN."""
        if self.listen_dsn is not None:
            return self.listen_dsn
        return None if self.engine.pool.is_pooled else self.engine.dsn

    def _note_outage(self, error: ConnectionFailed) -> None:
        """Report that the database cannot be reached, once until it can be reached again."""
        if self.outage.begin(time.monotonic()):
            self.on_event(database_event(error=error))

    def _note_connected(self) -> None:
        """Report the end of an outage."""
        took = self.outage.end(time.monotonic())
        if took is not None:
            note = f"connected again after {took:.1f} s"
            self.on_event(database_event(note=note, seconds=took))

    def _run(self, dispatcher: Dispatcher, stop: threading.Event) -> None:
        dispatcher.tick()
        self._note_connected()
        while not stop.is_set() and dispatcher.is_enabled and not self._may_rest(dispatcher):
            was_woken = self.wake.wait(dispatcher.seconds_to_timer(POLL_SECONDS))
            self.wake.clear()
            if was_woken and dispatcher.seconds_since_poll() < MIN_PAUSE_SECONDS:
                dispatcher.handle_inbox()
                # the wake-up may have announced a change
                stop.wait(MIN_PAUSE_SECONDS - dispatcher.seconds_since_poll())
            dispatcher.tick()
            self._note_connected()

    def _may_rest(self, dispatcher: Dispatcher) -> bool:
        """Whether nothing has happened for long, and nothing will soon."""
        if self.idle_after is None or dispatcher.quiet_seconds() < self.idle_after:
            return False
        if self._attached is not None and self._attached.is_following:
            return False
        if self._wal is not None and self._wal.is_needed:
            # no writer notes what it wrote: somebody has to decode it
            return False
        is_quiet = dispatcher.seconds_to_timer(float("inf")) > 2 * AWAKE_SECONDS
        if is_quiet and self._maintenance is not None:
            self._maintenance.stays = True
        return is_quiet


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
