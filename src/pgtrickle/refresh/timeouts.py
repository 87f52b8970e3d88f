"""Time limits of refreshes, comparisons and previews: past its limit, one is canceled, on Spark too.

A thread watches the refreshes that run. Past the limit it cancels the statements of a refresh, on all its
connections, and its jobs, and repeats that until the refresh has ended: one that is between two statements
fails at the next. If a program in the driver's JVM does not stop in time, the JVM is ended and restarted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from pgtrickle.model.durations import duration_text
from pgtrickle.model.errors import PreviewTimedOut, RefreshTimedOut, SparkLost, VerifyTimedOut
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.postgres.pool import Pool

WATCH_SECONDS: Final = 0.2
PACE_SECONDS: Final = 0.02
"""How long the watcher rests at least."""
AGAIN_SECONDS: Final = 1.0
"""How often a cancellation is repeated: the refresh may have been between two statements or jobs."""
_NUMBERS: Final = count(1)
"""For tags of Spark's jobs: several engines may share one Spark."""
GRACE_SECONDS = 30.0
"""How long a program may continue in the JVM after its refresh was canceled."""


@dataclass(eq=False, slots=True)
class Timeout:
    """The time limit of a running refresh, the thread it runs in, and what it is doing."""

    tag: str
    seconds: float | None
    thread: int = field(default_factory=threading.get_ident)
    started: float = field(default_factory=time.monotonic)
    tables: tuple[StreamTable, ...] = ()
    doing: str = "preparing it"
    is_over: bool = False
    is_on_spark: bool = False
    cancelled_at: float = 0.0
    paced_at: float = 0.0
    stop_at: float | None = None
    """When what runs is to be stopped, because something else would be faster."""
    is_stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while it is stopped, so that nothing that comes after it is."""

    @property
    def left(self) -> float | None:
        """The remaining seconds; None without a limit."""
        return None if self.seconds is None else self.started + self.seconds - time.monotonic()

    def allow(self, tables: Sequence[StreamTable], usual: float | None) -> None:
        """Set the longest of the limits of these tables."""
        asked = [usual if t.refresh_timeout is None else t.refresh_timeout or None for t in tables]
        self.tables = tuple(tables)
        if asked:
            self.seconds = None if None in asked else max(s for s in asked if s is not None)

    def error(self) -> RefreshTimedOut | VerifyTimedOut | PreviewTimedOut:
        """The error of a refresh past its limit."""
        names = ", ".join(str(table.name) for table in self.tables) or "stream tables"
        return RefreshTimedOut(
            f"the refresh of {names} did not finish within {duration_text(self.seconds or 0.0)};"
            f" it was {self.doing}, and was canceled",
            hint="it was rolled back; if it needs that long, raise the refresh_timeout of the stream table,"
            " or PGTRICKLE_REFRESH_TIMEOUT of the sidecar",
        )


@dataclass(eq=False, slots=True)
class ComparisonTimeout(Timeout):
    """The time limit of a running comparison of a stream table with its query."""

    def allow(self, tables: Sequence[StreamTable], usual: float | None) -> None:
        """Keep the limit of the comparison: it includes the refresh that comes first."""

    def error(self) -> VerifyTimedOut:
        """The error of a comparison past its limit."""
        names = ", ".join(str(table.name) for table in self.tables)
        return VerifyTimedOut(
            f"the comparison of {names} with its query did not finish within"
            f" {duration_text(self.seconds or 0.0)}; it was {self.doing}, and was canceled",
            hint="nothing was changed; if it needs that long, allow more seconds:"
            " `pgtrickle verify --timeout 0` has no limit",
        )


@dataclass(eq=False, slots=True)
class PreviewTimeout(Timeout):
    """The time limit of a running preview."""

    def allow(self, tables: Sequence[StreamTable], usual: float | None) -> None:
        """Keep the limit of the preview."""

    def error(self) -> PreviewTimedOut:
        """The error of a preview past its limit."""
        names = ", ".join(str(table.name) for table in self.tables)
        return PreviewTimedOut(
            f"the preview of {names} did not finish within {duration_text(self.seconds or 0.0)};"
            f" it was {self.doing}, and was canceled",
            hint="nothing was changed; if it needs that long, allow more seconds:"
            " `pgtrickle preview --timeout`",
        )


class Outpaced(Exception):
    """A refresh was stopped because it took much longer than the other strategy would."""

    def __init__(self, limit: Timeout) -> None:
        self.milliseconds = 1000 * (time.monotonic() - limit.paced_at)
        super().__init__(f"stopped after {self.milliseconds:,.0f} ms")


class Timeouts:
    """Watches the refreshes of one engine."""

    def __init__(self, pool: Pool, supply: SparkSupply, seconds: float | None) -> None:
        self._pool, self._supply, self._usual = pool, supply, seconds
        self._current = threading.local()
        self._lock = threading.Lock()
        self._running: set[Timeout] = set()
        self._has_some, self._is_closed = threading.Event(), threading.Event()
        self._watcher: threading.Thread | None = None
        self._interrupting: dict[Timeout, threading.Thread] = {}
        self._is_paced = threading.Event()

    @property
    def current(self) -> Timeout | None:
        """The limit of what this thread is doing."""
        found: Timeout | None = getattr(self._current, "limit", None)
        return found

    @contextmanager
    def refreshing(self) -> Iterator[Timeout]:
        """Limit a refresh in this thread: by the default limit until `allow` sets that of its tables."""
        with self._run(Timeout(f"pgtrickle refresh {next(_NUMBERS)}", self._usual)) as limit:
            yield limit

    @contextmanager
    def comparing(self, table: StreamTable, seconds: float | None) -> Iterator[Timeout]:
        """Limit a comparison of a stream table with its query in this thread; None is no limit."""
        tag = f"pgtrickle verify {next(_NUMBERS)}"
        with self._run(ComparisonTimeout(tag, seconds, tables=(table,))) as limit:
            yield limit

    @contextmanager
    def previewing(self, table: StreamTable, seconds: float) -> Iterator[Timeout]:
        """Limit a preview of a stream table in this thread."""
        tag = f"pgtrickle preview {next(_NUMBERS)}"
        with self._run(PreviewTimeout(tag, seconds, tables=(table,))) as limit:
            yield limit

    @contextmanager
    def pacing(self, milliseconds: float | None) -> Iterator[None]:
        """Stop what this thread does after these milliseconds and raise Outpaced; None lets it run."""
        limit, started = self.current, time.monotonic()
        if limit is None or milliseconds is None:
            yield
            return
        with limit.lock:
            limit.paced_at, limit.stop_at = started, started + milliseconds / 1000
            limit.is_stopped = False
        self._is_paced.set()
        try:
            yield
        except (Outpaced, SparkLost):
            self._end_pacing(limit)
            raise
        except Exception as error:
            if self._end_pacing(limit) and not limit.is_over:
                raise Outpaced(limit) from error
            raise
        else:
            # its statements may have been canceled, so nothing can follow in the same transaction
            if self._end_pacing(limit):
                raise Outpaced(limit)

    def _end_pacing(self, limit: Timeout) -> bool:
        """Let the thread continue; whether it was stopped."""
        with limit.lock:
            was_stopped, limit.stop_at, limit.is_stopped = limit.is_stopped, None, False
        asking = self._interrupting.get(limit)
        if was_stopped and asking is not None:
            # jobs that come next have the same tag
            asking.join(AGAIN_SECONDS)
        return was_stopped

    @contextmanager
    def _run(self, limit: Timeout) -> Iterator[Timeout]:
        self._watch(limit)
        self._current.limit = limit
        try:
            yield limit
        except (RefreshTimedOut, VerifyTimedOut, PreviewTimedOut):
            raise
        except Exception as error:
            if limit.is_over:
                raise limit.error() from error
            raise
        finally:
            self._current.limit = None
            with self._lock:
                self._running.discard(limit)

    def allow(self, limit: Timeout, tables: Sequence[StreamTable]) -> None:
        """Limit a refresh of these tables by the longest of their limits; 0 is no limit."""
        limit.allow(tables, self._usual)

    def note(self, what: str) -> None:
        """Note what the refresh of this thread does from now on."""
        if (limit := self.current) is not None:
            limit.doing = what

    def check(self, error: BaseException | None = None) -> None:
        """Raise if the refresh of this thread is past its limit."""
        if (limit := self.current) is not None and limit.is_over:
            raise limit.error() from error
        if limit is not None and limit.is_stopped:
            raise Outpaced(limit) from error

    @contextmanager
    def on_spark(self) -> Iterator[str | None]:
        """Note that the refresh of this thread computes on Spark; yields the tag of its jobs."""
        limit = self.current
        if limit is None:
            yield None
            return
        limit.doing, limit.is_on_spark = "computing on Spark", True
        try:
            yield limit.tag
        finally:
            limit.doing, limit.is_on_spark = "applying the result", False
        self.check()

    def close(self) -> None:
        """Stop the watching thread."""
        self._is_closed.set()
        self._is_paced.set()
        self._has_some.set()

    def _watch(self, limit: Timeout) -> None:
        with self._lock:
            self._running.add(limit)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._serve, name="refresh limits", daemon=True)
                self._watcher.start()
        self._has_some.set()

    def _serve(self) -> None:
        while not self._is_closed.is_set():
            with self._lock:
                running = list(self._running)
                if not running:
                    self._has_some.clear()
            if not running:
                self._has_some.wait()
                continue
            for limit in running:
                if limit.left is not None and limit.left <= 0:
                    self._end(limit)
                self._keep_pace(limit)
            self._is_paced.clear()
            self._is_paced.wait(self._seconds_to_watch(running))

    def _end(self, limit: Timeout) -> None:
        limit.is_over = True
        if time.monotonic() < limit.cancelled_at + AGAIN_SECONDS:
            return
        limit.cancelled_at = time.monotonic()
        spark = self._cancel(limit)
        if spark is not None and limit.left is not None and limit.left < -GRACE_SECONDS:
            self._supply.give_up(spark, "a program in it did not stop when its refresh was canceled")

    def _seconds_to_watch(self, running: Sequence[Timeout]) -> float:
        """How long nothing needs to be done."""
        now = time.monotonic()
        stops = [stop for limit in running if (stop := limit.stop_at) is not None]
        with self._lock:
            # one may have begun since
            stops += [stop for limit in self._running if (stop := limit.stop_at) is not None]
        return max(PACE_SECONDS, min([WATCH_SECONDS, *(stop - now for stop in stops)]))

    def _keep_pace(self, limit: Timeout) -> None:
        """Stop a refresh that takes too long; again and again, since it may be between two statements."""
        with limit.lock:
            if limit.stop_at is not None and time.monotonic() >= limit.stop_at:
                limit.is_stopped = True
                self._cancel(limit)

    def _cancel(self, limit: Timeout) -> Spark | None:
        """Cancel the statements of a refresh, and its jobs; gives the Spark that it computes on."""
        self._pool.cancel(limit.thread)
        spark = self._supply.current
        if spark is None or not limit.is_on_spark:
            return None
        asking = self._interrupting.get(limit)
        if asking is None or not asking.is_alive():
            # a frozen JVM does not answer, so another thread asks it
            self._interrupting = {
                one: thread for one, thread in self._interrupting.items() if thread.is_alive()
            }
            asking = threading.Thread(target=spark.interrupt, args=(limit.tag,), daemon=True)
            self._interrupting[limit] = asking
            asking.start()
        return spark
