"""The Spark that all refreshes share: one context with a session for small and one for large windows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.model.errors import ExecutorCannotConnect, SparkFailed, SparkLost
from pgtrickle.pipeline.class_archive import ClassArchive, find_archive
from pgtrickle.pipeline.configuration import (
    LARGE,
    SMALL,
    default_heap,
    default_settings,
    is_embedded,
    shuffle_settings,
)
from pgtrickle.pipeline.java import require_java
from pgtrickle.pipeline.jvm.failures import (
    executor_failure,
    is_session_lost,
    is_unreachable,
    is_worker_lost,
    spark_failure,
)
from pgtrickle.pipeline.jvm.launch import LaunchedJvm, spark_home
from pgtrickle.pipeline.jvm.process import (
    OUT_OF_MEMORY,
    HeapUsage,
    class_path,
    describe_exit,
    detach_gateway,
    heap_usage,
    is_remote,
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
CONNECT_RETRIES: Final = 5
"""How often a call of a Spark Connect server is repeated: for about 17 seconds."""
REMOTE_SLOTS: Final = 8
"""How many tasks a Spark Connect server is expected to run at a time."""
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
        configuration: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._root = root
        self._is_ours = is_ours
        self.is_embedded = not is_remote(root) and is_embedded(root)
        """Whether tasks run in the process of the driver, which is on this machine."""
        self._process = jvm_process(root)
        self._ending: str | None = None
        self._launched, self._archive = launched, archive
        # a new session of a Spark Connect server has nothing of what the first one was configured with
        given = configuration if is_remote(root) else {}
        self.small = _configure(root.newSession(), {**given, **SMALL})
        self.large = _configure(root.newSession(), {**given, **LARGE, **shuffle_settings(root)})
        if is_remote(root):
            for session in (root, self.small, self.large):
                _limit_retries(session)
        self.programs = Programs(self.small)
        self.sources = Sources(self.large)

    @property
    def heap_bytes(self) -> int:
        """The heap of the driver; for a remote one, the default."""
        return self.programs.heap_bytes or default_heap()

    @property
    def slots(self) -> int:
        """How many tasks run at a time; a guess if the driver is remote."""
        return REMOTE_SLOTS if is_remote(self._root) else self._root.sparkContext.defaultParallelism

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
    def process_id(self) -> int | None:
        """The process of the driver's JVM; None if this process did not start it."""
        return None if self._process is None else self._process.pid

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
        sessions = (self._root, self.small, self.large) if is_remote(self._root) else (self._root,)
        found = (why_dead(session, self._process) for session in sessions)
        return self._ending or next(filter(None, found), None)

    def ask(self) -> None:
        """Return once the JVM has answered a call."""
        ping(self._root)

    def check(self, failure: Exception) -> None:
        """Raise if not the program failed but Spark: it or one of its processes died, or cannot connect."""
        if isinstance(failure, (SparkLost, ExecutorCannotConnect)):
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
        if is_remote(self._root) and is_session_lost(failure):
            self._ending = "the Spark Connect server has ended the session"
            raise SparkLost(
                f"Spark has ended: {self._ending}", hint="refresh again; the refresh was rolled back"
            ) from failure
        if (unreached := executor_failure(failure)) is not None:
            raise unreached from failure
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
                self._stop()
        self._remove_files()

    def close(self) -> None:
        """Stop a Spark that was started here and remove its files; a session given to us keeps running."""
        if self._is_ours and self.why_dead() is not None:
            self.discard()
        elif self._is_ours:
            self._stop()
        self._remove_files()

    def _stop(self) -> None:
        """Stop the context. On a Spark Connect server it is not ours, and every session ends by itself."""
        if is_remote(self._root):
            for session in (self.small, self.large):
                session.stop()
        self._root.stop()

    def _remove_files(self) -> None:
        self.sources.addresses.close()
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
        return Spark(_connect_session(master, configuration), is_ours=True, configuration=configuration)
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
    try:
        return _configured(builder, configuration).getOrCreate()
    except (PySparkException, OSError) as failure:
        raise SparkFailed(f"Spark could not be started on {master}: {failure}") from failure


def _configured(builder: SparkSession.Builder, configuration: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in configuration.items():
        builder = builder.config(key, value)
    return builder.appName(APPLICATION)


def _connect_session(master: str, configuration: Mapping[str, str]) -> SparkSession:
    """Open a session of a Spark Connect server."""
    if find_spec("grpc") is None:
        raise SparkFailed(
            "Spark Connect needs packages that are not installed", hint="pip install 'pgtrickle[connect]'"
        )
    builder = _configured(SparkSession.builder.remote(master), configuration)
    try:
        # a session of this process that has been lost must not be handed out again
        return builder.create()
    except (PySparkException, OSError) as failure:
        raise SparkFailed(f"Spark could not be started on {master}: {failure}") from failure


def _limit_retries(session: Any) -> None:
    """Let calls of a Spark Connect server that is gone fail soon: another session may reach the next one."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_RETRIES)])


def _configure(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session
