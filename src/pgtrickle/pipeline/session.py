"""The Spark that all refreshes share: one context with a session for small and one for large windows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.model.errors import SparkFailed, SparkLost
from pgtrickle.pipeline.class_archive import ClassArchive, find_archive
from pgtrickle.pipeline.configuration import LARGE, SMALL, default_heap, default_settings, shuffle_settings
from pgtrickle.pipeline.java import require_java
from pgtrickle.pipeline.jvm.failures import is_unreachable, is_worker_lost, spark_failure
from pgtrickle.pipeline.jvm.launch import LaunchedJvm, spark_home
from pgtrickle.pipeline.jvm.process import (
    OUT_OF_MEMORY,
    HeapUsage,
    class_path,
    describe_exit,
    detach_gateway,
    heap_usage,
    jvm_process,
    kill_jvm,
    ping,
    resident_bytes,
    why_dead,
)
from pgtrickle.pipeline.programs import Programs
from pgtrickle.pipeline.small import FURTHER_ROUNDS, WARMING_ROUNDS, warm_small
from pgtrickle.pipeline.source import PartitionedQuery, Sources
from pgtrickle.pipeline.tags import cancel_jobs

APPLICATION: Final = "pgtrickle"
_ENDING_SECONDS: Final = 5.0
"""How long to wait for a JVM to exit whose gateway is gone."""


class Spark:
    """Two sessions on one context. `close` stops a Spark that was started here."""

    def __init__(
        self,
        root: SparkSession,
        *,
        is_ours: bool,
        launched: LaunchedJvm | None = None,
        archive: ClassArchive | None = None,
    ) -> None:
        self._root = root
        self._is_ours = is_ours
        self._process = jvm_process(root)
        self._ending: str | None = None
        self._launched, self._archive = launched, archive
        self.small = _configure(root.newSession(), SMALL)
        self.large = _configure(root.newSession(), {**LARGE, **shuffle_settings(root)})
        self.programs = Programs(self.small)
        self.sources = Sources(self.large)

    @property
    def heap_bytes(self) -> int:
        """The heap of the driver; for a remote one, the default."""
        return self.programs.heap_bytes or default_heap()

    def heap_usage(self) -> HeapUsage | None:
        """The heap of the driver's JVM; None for a remote one. Waits for a JVM that does not answer."""
        return heap_usage(self._root)

    @property
    def resident_bytes(self) -> int | None:
        """The memory that the driver's JVM occupies; None if this process did not start it."""
        return None if self._process is None else resident_bytes(self._process)

    def warm(self) -> None:
        """Run first queries now, so that no small refresh pays for loading classes."""
        warm_small(self, WARMING_ROUNDS)

    def warm_further(self) -> None:
        """Do now what large refreshes, and later starts, would wait for. It may fail if Spark is closed."""
        warm_small(self, FURTHER_ROUNDS)
        self._warm_tasks()
        if self._archive is not None and self._is_ours:
            self._archive.write(class_path(self._root))

    def _warm_tasks(self) -> None:
        """Start the Python workers that large loads read with."""
        nothing = PartitionedQuery(queries=(), fields=(), snapshot="", has_weight=True)
        self.sources.frame("", nothing).mapInArrow(lambda batches: batches, "weight bigint").collect()

    def interrupt(self, tag: str | None = None) -> None:
        """Cancel what runs under a tag, or everything; threads that wait for it fail at once."""
        try:
            self.programs.interrupt(tag)
            for session in (self.small, self.large):
                if tag is None:
                    session.interruptAll()
                else:
                    cancel_jobs(session, tag)
        except Exception as failure:
            # nothing runs in a dead Spark
            with suppress(SparkLost):
                self.check(failure)
                raise

    @property
    def has_process(self) -> bool:
        """Whether the JVM is a child process that can be watched."""
        return self._process is not None

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the JVM exited because it ran out of memory."""
        return self._process is not None and self._process.returncode == OUT_OF_MEMORY

    def why_ended(self) -> str | None:
        """How the JVM's process ended; None while it is alive. Makes no call into the JVM."""
        has_ended = self._process is not None and self._process.poll() is not None
        return describe_exit(self._process) if self._process is not None and has_ended else None

    def why_dead(self) -> str | None:
        """Why this Spark cannot be used any more; None if it answers and its context runs."""
        return self._ending or why_dead(self._root, self._process)

    def ask(self) -> None:
        """Return once the JVM has answered a call."""
        ping(self._root)

    def check(self, failure: Exception) -> None:
        """Raise SparkLost if the failure happened because Spark or one of its processes died."""
        if isinstance(failure, SparkLost):
            raise failure
        if is_unreachable(failure) and self._process is not None:
            # it is exiting right now; wait for its exit code
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_SECONDS)
        why = self.why_dead()
        if why is None and is_unreachable(failure):
            why = self._ending = "its gateway was lost"
        if why is not None:
            raise SparkLost(
                f"Spark has ended: {why}", hint="refresh again; the refresh was rolled back"
            ) from failure
        if is_worker_lost(failure):
            raise SparkLost(
                f"Spark has lost a process: {spark_failure(failure).message}",
                hint="refresh again; the refresh was rolled back",
            ) from failure

    def discard(self) -> None:
        """Kill what is left of a dead Spark, so that another can start."""
        self._ending = self._ending or "it was discarded"
        self.programs.close()
        if self._is_ours and self._process is not None:
            kill_jvm(self._process)
        if self._process is not None and self._process.poll() is not None:
            detach_gateway(self._root)
        elif self._is_ours:
            with suppress(Exception):
                self._root.stop()
        self._remove_files()

    def close(self) -> None:
        """Stop a Spark that was started here and remove its files; a session given to us keeps running."""
        if self._is_ours and self.why_dead() is not None:
            self.discard()
        elif self._is_ours:
            self._root.stop()
        self._remove_files()

    def _remove_files(self) -> None:
        if self._archive is not None:
            self._archive.close()
        if self._launched is not None:
            self._launched.remove_files()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_spark(
    master: str = "local[*]",
    *,
    configuration: Mapping[str, str] = MappingProxyType({}),
    cache_directory: Path | None = None,
) -> Spark:
    """Start Spark on a master (`local[*]`, `spark://…`, …), or connect to one over Spark Connect (`sc://…`).

    With a `cache_directory`, the JVM uses the archive of Spark's classes there, once there is one.
    """
    if master.startswith("sc://"):
        return Spark(_start_session(SparkSession.builder.remote(master), configuration, master), is_ours=True)
    require_java()
    # the workers need the same packages, and PySpark reads their interpreter from nowhere else
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-spark-"))
    launched = LaunchedJvm(directory)
    try:
        archive = find_archive(cache_directory, spark_home(), directory)
        more_options = archive.options if archive is not None else ""
        chosen = {**default_settings(master, directory, more_options), **configuration}
        launched.connect({"spark.master": master, "spark.app.name": APPLICATION, **chosen})
        root = _start_session(SparkSession.builder.master(master), chosen, master)
        return Spark(root, is_ours=True, launched=launched, archive=archive)
    except BaseException:
        launched.abort()
        raise


def adopt(session: SparkSession) -> Spark:
    """Use the context of a session that someone else started and will stop.

    If it has ended, PySpark's current default session is used instead, if there is one.
    """
    found = next((one for one in (session, _default_session()) if one is not None and _is_alive(one)), None)
    if found is None:
        raise SparkLost(
            "the Spark session that was given to pgtrickle has ended, and pgtrickle cannot restart it",
            hint="start another session and connect again, or pass connect() a function that returns one",
        )
    return Spark(found, is_ours=False)


def _default_session() -> SparkSession | None:
    return SparkSession._instantiatedSession


def _is_alive(session: SparkSession) -> bool:
    return why_dead(session, jvm_process(session)) is None


def _start_session(
    builder: SparkSession.Builder, configuration: Mapping[str, str], master: str
) -> SparkSession:
    for key, value in configuration.items():
        builder = builder.config(key, value)
    try:
        return builder.appName(APPLICATION).getOrCreate()
    except (PySparkException, OSError) as failure:
        raise SparkFailed(f"Spark could not be started on {master}: {failure}") from failure


def _configure(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session
