"""The Spark that all refreshes share: one context, a session for small windows, one for large ones."""

from __future__ import annotations

import os
import shutil
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
from pgtrickle.pipeline.failures import failed, is_unreachable, is_worker_lost
from pgtrickle.pipeline.gateway import (
    OUT_OF_MEMORY,
    answers,
    end_jvm,
    ending_of,
    forget_gateway,
    process_of,
    why_dead,
)
from pgtrickle.pipeline.java import require_java
from pgtrickle.pipeline.prepared import Programs
from pgtrickle.pipeline.small import warm_small
from pgtrickle.pipeline.source import PartitionedQuery, Sources
from pgtrickle.pipeline.tags import cancel_jobs

_BOTH: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # or ${env:…} in a text or a name of a query would become what the environment of this process holds
    "spark.sql.variable.substitute": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # rows may be megabytes long, and a batch of them is held in memory
    "spark.sql.execution.arrow.maxBytesPerBatch": f"{8 << 20}",
}
_SMALL: Final = {
    **_BOTH,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    # a broadcast is a job of its own, which costs more than sorting what fits in one task
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # above this size the planner would spread a single partition again, and it multiplies sizes to
    # guess how large a join is
    "spark.sql.maxSinglePartitionBytes": f"{2**63 - 1}b",
    # with many joins, most of the optimizer's time goes into conditions that it infers
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.singleTaskExecution.enabled": "true",
    # an inner join forgets that its rows are in one partition, and the next one would exchange them; and
    # rows that the planner has looked at could not be replaced by those of the next window
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("EliminateOuterJoin", "ConvertToLocalRelation")
    ),
    # compiling code takes longer than interpreting a few thousand rows, also when it is compiled once
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LARGE: Final = {
    **_BOTH,
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
}
_ENDING_SECONDS: Final = 5.0
"""A JVM whose gateway is gone has ended after so long, or lives without it."""
_QUIET_LOGGING: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
# Spark announces a change of level unless the shells have the level of the root
logger.shell.name = org.apache.spark.repl.Main
logger.shell.level = error
logger.python.name = org.apache.spark.api.python.PythonGatewayServer
logger.python.level = error
# a failed task fails its job, which we report ourselves
logger.task.name = org.apache.spark.executor.Executor
logger.task.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


class Spark:
    """Two sessions on one context; what was started here ends with `close`."""

    def __init__(self, root: SparkSession, *, is_ours: bool, directory: Path | None = None) -> None:
        self._root = root
        self._is_ours = is_ours
        self._process = process_of(root)
        self._ending: str | None = None
        self._directory = directory
        self.small = _configured(root.newSession(), _SMALL)
        self.large = _configured(root.newSession(), {**_LARGE, **_spread(root)})
        self.programs = Programs(self.small)
        self.sources = Sources(self.large)

    @property
    def heap_bytes(self) -> int:
        """The heap of the driver; of a remote one, what we would have given it."""
        return self.programs.heap_bytes or default_heap()

    def warm(self) -> None:
        """Pay for first queries now, so that no refresh does."""
        warm_small(self)
        nothing = PartitionedQuery(queries=(), fields=(), snapshot="", has_weight=True)
        self.sources.frame("", nothing).mapInArrow(lambda batches: batches, "weight bigint").collect()

    def interrupt(self, tag: str | None = None) -> None:
        """Cancel what runs under a tag, or everything, so that whoever waits for it fails at once."""
        try:
            self.programs.interrupt(tag)
            for session in (self.small, self.large):
                if tag is None:
                    session.interruptAll()
                else:
                    cancel_jobs(session, tag)
        except Exception as failure:
            # where Spark has died, nothing runs
            with suppress(SparkLost):
                self.check(failure)
                raise

    @property
    def has_process(self) -> bool:
        """Whether the JVM is a process that can be watched from here."""
        return self._process is not None

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the JVM has ended for want of memory."""
        return self._process is not None and self._process.returncode == OUT_OF_MEMORY

    def why_ended(self) -> str | None:
        """How the JVM's process ended; None while it lives. Asks nothing of the JVM."""
        has_ended = self._process is not None and self._process.poll() is not None
        return ending_of(self._process) if self._process is not None and has_ended else None

    def why_dead(self) -> str | None:
        """What is wrong with this Spark; None if it answers and its context runs."""
        return self._ending or why_dead(self._root, self._process)

    def ask(self) -> None:
        """Return once the JVM has answered a question."""
        answers(self._root)

    def check(self, failure: Exception) -> None:
        """Raise SparkLost if the failure says nothing of a program: Spark, or a process of its, has died."""
        if isinstance(failure, SparkLost):
            raise failure
        if is_unreachable(failure) and self._process is not None:
            # it ends at this moment: how it ended is known once it is over
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_SECONDS)
        why = self.why_dead()
        if why is None and is_unreachable(failure):
            why = self._ending = "its gateway was lost"
        if why is not None:
            raise SparkLost(f"Spark has ended: {why}", hint="refresh again; nothing was kept") from failure
        if is_worker_lost(failure):
            raise SparkLost(
                f"Spark has lost a process: {failed(failure).message}", hint="refresh again; nothing was kept"
            ) from failure

    def discard(self) -> None:
        """Let go of a Spark that has died: kill what is left of it, so that another can start."""
        self._ending = self._ending or "it was discarded"
        self.programs.close()
        if self._is_ours and self._process is not None:
            end_jvm(self._process)
        if self._process is not None and self._process.poll() is not None:
            forget_gateway(self._root)
        elif self._is_ours:
            with suppress(Exception):
                self._root.stop()
        self._remove_files()

    def close(self) -> None:
        """Stop what we started and remove its files; a session that was given to us goes on."""
        if self._is_ours and self.why_dead() is not None:
            self.discard()
        elif self._is_ours:
            self._root.stop()
        self._remove_files()

    def _remove_files(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_spark(master: str = "local[*]", *, configuration: Mapping[str, str] = MappingProxyType({})) -> Spark:
    """Start Spark on a master (`local[*]`, `spark://…`, …) or reach one over Spark Connect (`sc://…`)."""
    if master.startswith("sc://"):
        return Spark(_started(SparkSession.builder.remote(master), configuration, master), is_ours=True)
    require_java()
    # the workers must find the same packages; PySpark takes their interpreter from nowhere else
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    directory = Path(tempfile.mkdtemp(prefix="pgtrickle-spark-"))
    try:
        chosen = {**_defaults(master, directory), **configuration}
        root = _started(SparkSession.builder.master(master), chosen, master)
        return Spark(root, is_ours=True, directory=directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def adopt(session: SparkSession) -> Spark:
    """Use the context of a session that someone else started and will stop.

    Where it has ended, the session that PySpark gives out now is used, if another one was started.
    """
    found = next((one for one in (session, _default_session()) if one is not None and _lives(one)), None)
    if found is None:
        raise SparkLost(
            "the Spark session that was given to pgtrickle has ended, and it cannot be started from here",
            hint="start another session and connect again, or give connect() a function that returns one",
        )
    return Spark(found, is_ours=False)


def _default_session() -> SparkSession | None:
    return SparkSession._instantiatedSession


def _lives(session: SparkSession) -> bool:
    return why_dead(session, process_of(session)) is None


def _started(builder: SparkSession.Builder, configuration: Mapping[str, str], master: str) -> SparkSession:
    for key, value in configuration.items():
        builder = builder.config(key, value)
    try:
        return builder.appName("pgtrickle").getOrCreate()
    except (PySparkException, OSError) as failure:
        raise SparkFailed(f"Spark could not be started on {master}: {failure}") from failure


def _configured(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def _spread(root: SparkSession) -> dict[str, str]:
    """On one machine, few parts of an exchange: each task opens a file for every part of it."""
    master = root.conf.get("spark.master", "") or ""
    if not master.startswith("local") or master.startswith("local-cluster"):
        return {}
    return {"spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 1)))}


def _defaults(master: str, directory: Path) -> dict[str, str]:
    logging = directory / "log4j2.properties"
    logging.write_text(_QUIET_LOGGING)
    # a JVM without memory would limp on with threads that have died: it ends, and another one starts
    java_options = (
        f"-Dlog4j2.configurationFile={logging.as_uri()} -Djava.io.tmpdir={directory}"
        " -XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"
    )
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
        "spark.local.dir": str(directory),
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.memory": f"{default_heap() >> 20}m",
        "spark.python.worker.reuse": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def default_heap() -> int:
    """A quarter of the memory, within one and eight gigabytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(8192, max(1024, total // 4 // (1 << 20))) << 20
