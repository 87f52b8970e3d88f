"""The Spark that all refreshes share: one context, a session for small windows, one for large ones."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.java import require_java
from pgtrickle.pipeline.prepared import Programs
from pgtrickle.pipeline.small import warm_small
from pgtrickle.pipeline.source import PartitionedQuery, Sources

_BOTH: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
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

    def interrupt(self) -> None:
        """End what runs, so that whoever waits for it fails at once."""
        for session in (self.small, self.large):
            session.interruptAll()
        self.programs.interrupt()

    def close(self) -> None:
        """Stop what we started and remove its files; a session that was given to us goes on."""
        if self._is_ours:
            self._root.stop()
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
    """Use the context of a session that someone else started and will stop."""
    return Spark(session, is_ours=False)


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
    java_options = f"-Dlog4j2.configurationFile={logging.as_uri()} -Djava.io.tmpdir={directory}"
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
