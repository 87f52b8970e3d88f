"""The Spark that all refreshes share: one context with a session for small and one for large windows."""

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
from pgtrickle.pipeline.java import require_java
from pgtrickle.pipeline.jvm.failures import failed, is_unreachable, is_worker_lost
from pgtrickle.pipeline.jvm.process import (
    OUT_OF_MEMORY,
    describe_exit,
    detach_gateway,
    jvm_process,
    kill_jvm,
    ping,
    why_dead,
)
from pgtrickle.pipeline.programs import Programs
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
    # a broadcast is a separate job, which costs more than sorting what fits in one task
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # above this size the planner would repartition a single partition, and it estimates the size of a
    # join by multiplying
    "spark.sql.maxSinglePartitionBytes": f"{2**63 - 1}b",
    # with many joins, the optimizer spends most of its time on inferred conditions
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.singleTaskExecution.enabled": "true",
    # after an inner join the planner forgets that its rows are in one partition, and the next join would
    # exchange them; and rows folded into the plan could not be replaced by those of the next window
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("EliminateOuterJoin", "ConvertToLocalRelation")
    ),
    # generating code takes longer than interpreting a few thousand rows
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LARGE: Final = {
    **_BOTH,
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
}
_ENDING_SECONDS: Final = 5.0
"""How long to wait for a JVM to exit whose gateway is gone."""
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
    """Two sessions on one context. `close` stops a Spark that was started here."""

    def __init__(self, root: SparkSession, *, is_ours: bool, directory: Path | None = None) -> None:
        self._root = root
        self._is_ours = is_ours
        self._process = jvm_process(root)
        self._ending: str | None = None
        self._directory = directory
        self.small = _configured(root.newSession(), _SMALL)
        self.large = _configured(root.newSession(), {**_LARGE, **_spread(root)})
        self.programs = Programs(self.small)
        self.sources = Sources(self.large)

    @property
    def heap_bytes(self) -> int:
        """The heap of the driver; for a remote one, the default."""
        return self.programs.heap_bytes or default_heap()

    def warm(self) -> None:
        """Run first queries now, so that no refresh pays for loading classes."""
        warm_small(self)
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
            raise SparkLost(f"Spark has ended: {why}", hint="refresh again; nothing was kept") from failure
        if is_worker_lost(failure):
            raise SparkLost(
                f"Spark has lost a process: {failed(failure).message}", hint="refresh again; nothing was kept"
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
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_spark(master: str = "local[*]", *, configuration: Mapping[str, str] = MappingProxyType({})) -> Spark:
    """Start Spark on a master (`local[*]`, `spark://…`, …), or connect to one over Spark Connect (`sc://…`)."""
    if master.startswith("sc://"):
        return Spark(_started(SparkSession.builder.remote(master), configuration, master), is_ours=True)
    require_java()
    # the workers need the same packages, and PySpark reads their interpreter from nowhere else
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

    If it has ended, PySpark's current default session is used instead, if there is one.
    """
    found = next((one for one in (session, _default_session()) if one is not None and _lives(one)), None)
    if found is None:
        raise SparkLost(
            "the Spark session that was given to pgtrickle has ended, and pgtrickle cannot restart it",
            hint="start another session and connect again, or pass connect() a function that returns one",
        )
    return Spark(found, is_ours=False)


def _default_session() -> SparkSession | None:
    return SparkSession._instantiatedSession


def _lives(session: SparkSession) -> bool:
    return why_dead(session, jvm_process(session)) is None


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
    """Few shuffle partitions on one machine, since each task opens a file for every one of them."""
    master = root.conf.get("spark.master", "") or ""
    if not master.startswith("local") or master.startswith("local-cluster"):
        return {}
    return {"spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 1)))}


def _defaults(master: str, directory: Path) -> dict[str, str]:
    logging = directory / "log4j2.properties"
    logging.write_text(_QUIET_LOGGING)
    # a JVM without memory would limp on with dead threads; let it exit, and another one starts
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
    """A quarter of the machine's memory, between 1 and 8 GB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(8192, max(1024, total // 4 // (1 << 20))) << 20
