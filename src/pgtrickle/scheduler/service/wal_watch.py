"""Decodes the write-ahead log beside the polls, and hands sources over between triggers and the log.

As long as no stream table asks for the log, the thread only waits. The position of the log shows whether
there is anything to decode, so an idle database costs one short statement each time.
"""

from __future__ import annotations

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
"""How often to look whether the log has grown."""
CHECK_SECONDS: Final = 0.5
"""How often to look for sources to hand over, and whether stream tables were redefined."""
PRUNE_SECONDS: Final = 20.0


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
        try:
            while True:
                with suppress(Busy):
                    self.step()
                if self._stop.wait(DECODE_SECONDS if self._demand.is_used else CHECK_SECONDS):
                    return
        except (DatabaseError, PgTrickleError) as error:
            self.dispatcher.report(
                ConnectionFailed(f"WAL capture failed: {str(error).strip()}", hint="the sidecar tries again")
            )

    def step(self) -> None:
        """Decode what is new, and hand over what is due."""
        wal = self.dispatcher.engine.wal
        if self._demand.is_used:
            try:
                if wal.decode():
                    self.dispatcher.wake.set()
            except SlotLost:
                # the maintenance repairs the captures, and their readers are loaded again
                wal.forget()
        definitions = self.dispatcher.definitions
        is_redefined = definitions is not self._known
        is_due = self._demand.is_any and time.monotonic() - self._checked_at >= CHECK_SECONDS
        if is_redefined or is_due:
            self._check()
            self._known, self._checked_at = definitions, time.monotonic()

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
