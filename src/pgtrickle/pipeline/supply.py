"""Hands out Spark, and starts it again with growing pauses after it has died.

Spark may die at any time: its JVM is killed or runs out of memory, a cluster stops its context, the gateway
breaks. Everything that computes gets its Spark here. While a new one starts, callers do not wait with a
transaction open: they get `SparkLost`, which does not count as a failure of a stream table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException

from pgtrickle.model.errors import PgTrickleError, SparkLost
from pgtrickle.pipeline.jvm import GatewayError
from pgtrickle.pipeline.jvm.failures import text_of
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.suspects import Suspects, TableKey

WATCH_SECONDS: Final = 1.0
"""How often the watcher checks whether the JVM's process has exited."""
ASK_SECONDS: Final = 10.0
"""How often the JVM is pinged."""
ANSWER_SECONDS = 60.0
"""A JVM that does not answer for this long is frozen, and is killed."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
STEADY_SECONDS: Final = 120.0
"""After a life of at least this long, the next Spark starts without a pause."""


@dataclass(frozen=True, slots=True)
class SparkChange:
    """Spark died, could not be started, or is back after `seconds`; `lost` is None in the last case."""

    text: str
    lost: SparkLost | None
    seconds: float | None = None


class SparkSupply:
    """Hands out Spark, and a new one after the old one died. Safe to use from many threads."""

    def __init__(self, start: Callable[[], Spark]) -> None:
        self._start = start
        self._changed = threading.Condition()
        self._spark: Spark | None = None
        self._why: str | None = None
        self._has_failed = False
        self._is_starting = False
        self._is_closed = False
        self._closing, self._hurry = threading.Event(), threading.Event()
        self._cause: Exception | None = None
        self._blamed: frozenset[TableKey] = frozenset()
        self._started_at = 0.0
        self._pauses = 0
        self._computing: dict[object, frozenset[TableKey]] = {}
        self._suspects = Suspects()
        self._one_suspect = threading.Lock()
        self.failed_start: Exception | None = None
        """Why the first Spark could not be started, if `begin` was called."""
        self.deaths = 0
        self._listeners: list[Callable[[SparkChange], None]] = []

    @property
    def current(self) -> Spark | None:
        """The running Spark; None if none was started or it has died."""
        with self._changed:
            return self._spark

    @property
    def in_place(self) -> str | None:
        """Whether small programs are computed in the driver: `yes` or `no, because …`; None without Spark."""
        spark = self.current
        if spark is None:
            return None
        return "yes" if spark.programs.why_jobs is None else f"no, because {spark.programs.why_jobs}"

    @property
    def why_waiting(self) -> str | None:
        """Why there is no Spark now; None if there is one, or if none was needed yet."""
        with self._changed:
            return self._why

    def get(self) -> Spark:
        """The running Spark; the first call starts it. Raises SparkLost while it is being restarted."""
        with self._changed:
            if self._why is not None:
                raise self._lost(self._cause)
            if self._spark is None:
                self._use(self._start())
            assert self._spark is not None
            return self._spark

    def begin(self) -> None:
        """Start the first Spark in a thread of its own. Until it is ready, callers get SparkLost."""
        with self._changed:
            if self._spark is not None or self._why is not None or self._is_closed:
                return
            self._why, self._is_starting = "it is starting", True
        threading.Thread(target=self._start_first, name="spark starter", daemon=True).start()

    def wait(self, seconds: float) -> Spark:
        """The running Spark, or the next one if it starts in time. For callers without a transaction."""
        self.settle(seconds)
        return self.get()

    def settle(self, seconds: float) -> None:
        """If Spark has died, start the next one now; raises SparkLost if it does not start in time."""
        deadline = time.monotonic() + seconds
        with self._changed:
            if self._why is None:
                return
            self._has_failed = False
            self._hurry.set()
            while not (self._spark is not None or self._has_failed or self._is_closed):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if self._spark is None:
                raise self._lost(self._cause)

    @contextmanager
    def computing(self, tables: frozenset[TableKey]) -> Iterator[Spark]:
        """Spark for computing these stream tables. A failure because Spark died is raised as SparkLost."""
        with self._alone_if_suspect(tables):
            spark, key = self.get(), object()
            with self._changed:
                self._computing[key] = tables
            try:
                with _translate_loss(spark):
                    yield spark
            except SparkLost as lost:
                self._note_loss(spark, spark.why_dead())
                with self._changed:
                    lost.blamed = self._blamed & tables
                raise
            else:
                with self._changed:
                    self._suspects.note_success(tables)
            finally:
                with self._changed:
                    self._computing.pop(key, None)

    def give_up(self, spark: Spark, why: str) -> None:
        """Kill a Spark that does not respond to cancellation, and start another."""
        self._note_loss(spark, why)

    def is_isolated(self, table: TableKey) -> bool:
        """Whether a stream table has killed Spark too often to compute on it now."""
        with self._changed:
            return self._suspects.is_isolated(table, time.monotonic())

    def replace(self, spark: Spark | None) -> None:
        """Use this Spark from now on, or none; the previous one is left running."""
        with self._changed:
            self._spark = spark

    def listen(self, listener: Callable[[SparkChange], None]) -> None:
        """Call this function whenever Spark dies and when it is back."""
        with self._changed:
            self._listeners.append(listener)

    def unlisten(self, listener: Callable[[SparkChange], None]) -> None:
        """Call it no more."""
        with self._changed:
            self._listeners = [other for other in self._listeners if other != listener]

    def close(self) -> None:
        """Stop Spark if it was started, and start no other."""
        self._closing.set()
        self._hurry.set()
        with self._changed:
            self._is_closed = True
            spark, self._spark = self._spark, None
            self._changed.notify_all()
        if spark is not None:
            spark.close()

    def _tell(self, change: SparkChange) -> None:
        with self._changed:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(change)

    @contextmanager
    def _alone_if_suspect(self, tables: frozenset[TableKey]) -> Iterator[None]:
        with self._changed:
            is_suspect = any(map(self._suspects.is_suspect, tables))
        if not is_suspect:
            yield
            return
        with self._one_suspect:
            yield

    def _use(self, spark: Spark) -> None:
        """Hand out this Spark from now on and watch it. The caller holds the lock."""
        self._spark, self._why, self._has_failed, self._cause = spark, None, False, None
        self._is_starting = False
        self._started_at = time.monotonic()
        self._changed.notify_all()
        if spark.has_process:
            threading.Thread(target=self._watch, args=(spark,), name="spark watcher", daemon=True).start()

    def _start_first(self) -> None:
        try:
            spark = self._start()
        except Exception as failure:
            with self._changed:
                self._why, self._has_failed, self._is_starting = _cannot_start(failure), True, False
                self._cause = self.failed_start = failure
                self._changed.notify_all()
            return
        self._accept(spark)

    def _accept(self, spark: Spark) -> bool:
        """Hand out a Spark that has started; close it and return False if nobody wants one any more."""
        with self._changed:
            is_wanted = not self._is_closed
            if is_wanted:
                self._use(spark)
        if not is_wanted:
            spark.close()
        return is_wanted

    def _watch(self, spark: Spark) -> None:
        """Notice that Spark has died while nothing computes, or that it does not answer."""
        asked_at = time.monotonic()
        while not self._closing.wait(WATCH_SECONDS):
            if self.current is not spark:
                return
            why = spark.why_ended()
            if why is None and time.monotonic() - asked_at >= min(ASK_SECONDS, ANSWER_SECONDS):
                why = self._why_silent(spark)
                asked_at = time.monotonic()
            if why is not None and not self._closing.is_set():
                self._note_loss(spark, why)
                return

    def _why_silent(self, spark: Spark) -> str | None:
        """Ping the JVM from a separate thread, since a frozen JVM never answers; says why it is dead."""
        has_answered = threading.Event()

        def ask() -> None:
            with suppress(Exception):
                spark.ask()
            has_answered.set()

        threading.Thread(target=ask, name="spark question", daemon=True).start()
        if has_answered.wait(ANSWER_SECONDS):
            return None
        return f"its JVM gave no answer for {ANSWER_SECONDS:g} s"

    def _note_loss(self, spark: Spark, ending: str | None) -> None:
        """Discard a dead Spark and start another; of several callers, the first one does.

        Without an `ending`, Spark itself is alive and only a process that a job needed has died. That counts
        against the tables that computed, and nothing is restarted.
        """
        with self._changed:
            if self._is_closed or self._spark is not spark:
                return
            self._blamed = self._suspects.note_death(
                list(self._computing.values()),
                is_out_of_memory=spark.ran_out_of_memory,
                clock=time.monotonic(),
            )
            if ending is None:
                return
            self._spark, self._why, self._has_failed = None, ending, False
            self.deaths += 1
            self._pauses = 0 if time.monotonic() - self._started_at > STEADY_SECONDS else self._pauses + 1
            lost = self._lost()
            threading.Thread(target=self._restart, args=(spark,), name="spark starter", daemon=True).start()
        self._tell(SparkChange(lost.message, lost))

    def _restart(self, dead: Spark) -> None:
        with suppress(Exception):
            # remains of the dead one must not keep the next one from starting
            dead.discard()
        began, is_told = time.monotonic(), False
        while not self._closing.is_set():
            self._hurry.wait(self._pause())
            self._hurry.clear()
            try:
                spark = self._start()
            except Exception as failure:
                self._note_failed_start(failure, is_told=is_told)
                is_told = True
                continue
            if self._accept(spark):
                seconds = time.monotonic() - began
                self._tell(SparkChange(f"Spark is back after {seconds:.1f} s", None, seconds))
            return

    def _pause(self) -> float:
        return 0.0 if not self._pauses else min(FIRST_PAUSE * 2.0 ** min(self._pauses - 1, 16), LONGEST_PAUSE)

    def _note_failed_start(self, failure: Exception, *, is_told: bool) -> None:
        with self._changed:
            self._why, self._has_failed = _cannot_start(failure), True
            self._cause = failure
            self._pauses += 1
            lost = self._lost(failure)
            self._changed.notify_all()
        if not is_told:
            self._tell(SparkChange(lost.message, lost))

    def _lost(self, cause: BaseException | None = None) -> SparkLost:
        if self._is_starting:
            return SparkLost("Spark is starting", hint="refreshes that need it follow once it is ready")
        hint = cause.hint if isinstance(cause, SparkLost) else None
        return SparkLost(
            f"Spark has ended: {self._why}",
            hint=hint or "it restarts by itself; nothing is lost, and refreshes continue afterwards",
        )


def _cannot_start(failure: Exception) -> str:
    said = failure.message if isinstance(failure, PgTrickleError) else text_of(failure)
    return f"it cannot be started ({said.strip()})"


@contextmanager
def _translate_loss(spark: Spark) -> Iterator[None]:
    """Raise SparkLost instead of a failure that happened because Spark died."""
    try:
        yield
    except (GatewayError, PySparkException, ConnectionError, EOFError) as failure:
        spark.check(failure)
        raise
