"""Gathers in the background what cannot be read at once: sizes of buffers, and the memory of the JVM.

A thread does it while somebody scrapes, and ends when nobody has for a while. If a round takes long, because
there are thousands of sources, the next one comes later: gathering takes at most a twentieth of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgtrickle.catalog.buffer_sizes import BufferSize, buffer_sizes
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.postgres.connection import DatabaseError

if TYPE_CHECKING:
    from pgtrickle.pipeline.jvm.process import HeapUsage
    from pgtrickle.refresh.engine import Engine

ROUND_SECONDS: Final = 10.0
"""The shortest time between two rounds."""
IDLE_SECONDS: Final = 180.0
"""Without a scrape for this long, nothing is gathered."""
_SHARE: Final = 20
_LIMITS: Final = "set local statement_timeout = '10s'; set local lock_timeout = '1s'"


@dataclass(frozen=True, slots=True)
class Gathered:
    """What one round has found, and when by `time.monotonic`; None where it could not be had."""

    at: float
    buffers: tuple[BufferSize, ...] | None
    heap: HeapUsage | None
    resident: int | None


class Gathering:
    """The latest round. Asking for it keeps the rounds going."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._clock = engine, clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._asked_at = 0.0
        self._latest: Gathered | None = None
        self.is_paused = False
        """Whether the database rests, and should not be asked."""

    def latest(self) -> Gathered | None:
        """The latest round, without waiting; None before the first one, or if it is too old to be true."""
        with self._lock:
            self._asked_at = self._clock()
            if self._thread is None and not self._stop.is_set() and not self.is_paused:
                self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
                self._thread.start()
            found = self._latest
        return found if found is not None and self._clock() - found.at < IDLE_SECONDS else None

    def close(self) -> None:
        """End the thread. It may still wait for a JVM that does not answer, and is not waited for."""
        self._stop.set()

    def gather(self) -> Gathered:
        """One round."""
        spark = self._engine.supply.current
        resident, heap, buffers = None, None, None
        with suppress(Exception):
            # the JVM may end at any time, and the loop tells that
            resident = spark.resident_bytes if spark is not None else None
            heap = spark.heap_usage() if spark is not None else None
        with suppress(DatabaseError, PgTrickleError), self._engine.connection() as connection:
            connection.execute(_LIMITS)
            buffers = buffer_sizes(connection)
        return Gathered(self._clock(), buffers, heap, resident)

    def _serve(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            with self._lock:
                if self.is_paused or self._clock() - self._asked_at > IDLE_SECONDS:
                    self._thread = None
                    return
            started = time.monotonic()
            found = self.gather()
            with self._lock:
                self._latest = found
            pause = max(ROUND_SECONDS, _SHARE * (time.monotonic() - started))
