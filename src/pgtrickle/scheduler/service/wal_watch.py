"""Decodes the write-ahead log beside the polls, and hands sources over between triggers and the log.

As long as no stream table asks for the log, the thread only waits. It reads the log through a replication
connection, so that an idle database costs nothing. Where that is refused, one short statement shows whether
the log has grown.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.wal.hand_over import (
    WalDemand,
    drop_unused_slot,
    hand_over_sources,
    prune_decoded,
    wal_demand,
)
from pgtrickle.capture.wal.slot import SlotLost
from pgtrickle.model.errors import Busy, ConnectionFailed, PgTrickleError
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.scheduler.policy.definitions import Definitions
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.slot_alerts import SlotAlerts

DECODE_SECONDS: Final = 0.01
"""How long to wait between two rounds at least."""
STOP_SECONDS: Final = 0.2
"""How long a wait for the stream may delay the end of the thread."""
CHECK_SECONDS: Final = 0.5
"""How often to look for sources to hand over, and whether stream tables were redefined."""
PRUNE_SECONDS: Final = 20.0
NICENESS: Final = 10


@dataclass(slots=True)
class WalWatch:
    """Serves the log of a database while the dispatcher lives."""

    dispatcher: Dispatcher
    alerts: SlotAlerts = field(default_factory=SlotAlerts)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _known: Definitions | None = None
    _demand: WalDemand = field(default_factory=lambda: WalDemand(False, False, False))
    _checked_at: float = 0.0
    _pruned_at: float = field(default_factory=time.monotonic)

    @property
    def is_needed(self) -> bool:
        """Whether a source is captured from the log, or should be."""
        return self._demand.is_any

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._serve, name="wal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        self.dispatcher.engine.wal.streams = True
        yield_to_others()
        try:
            while True:
                rest = DECODE_SECONDS if self._demand.is_used else CHECK_SECONDS
                with suppress(Busy):
                    rest = max(rest, self.step())
                if self._stop.wait(rest):
                    return
        except (DatabaseError, PgTrickleError) as error:
            self.dispatcher.report(
                ConnectionFailed(f"WAL capture failed: {str(error).strip()}", hint="the sidecar tries again")
            )

    def step(self) -> float:
        """Decode what is new, and hand over what is due; how long to rest afterwards."""
        rest = self._decode() if self._demand.is_used else 0.0
        definitions = self.dispatcher.definitions
        is_redefined = definitions is not self._known
        is_due = self._demand.is_any and time.monotonic() - self._checked_at >= CHECK_SECONDS
        if is_redefined or is_due:
            self._check()
            self._known, self._checked_at = definitions, time.monotonic()
        return rest

    def _decode(self) -> float:
        wal = self.dispatcher.engine.wal
        try:
            sources, rest = wal.follow(STOP_SECONDS)
            if sources:
                self.dispatcher.wake.set()
            return rest
        except SlotLost:
            # the maintenance repairs the captures, and their readers are loaded again
            wal.forget()
            return 0.0

    def _check(self) -> None:
        with self.dispatcher.engine.pool.autocommitting() as connection:
            self._demand = wal_demand(connection)
            if not self._demand.is_any:
                return
            self.alerts.check(connection)
            hand_over_sources(connection)
            drop_unused_slot(connection)
            if time.monotonic() - self._pruned_at >= PRUNE_SECONDS:
                prune_decoded(connection)
                self._pruned_at = time.monotonic()
            self._demand = wal_demand(connection)


def yield_to_others() -> None:
    """Give this thread a low priority, where threads have one: applications write on the same machine."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
