"""The configuration of Spark: what both sessions need, and what small and large windows need."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

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
SMALL: Final = {
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
LARGE: Final = {
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


def is_embedded(root: SparkSession) -> bool:
    """Whether tasks run in the process of the driver, so that there is no other machine to compute on."""
    master = root.conf.get("spark.master", "") or ""
    return master.startswith("local") and not master.startswith("local-cluster")


def shuffle_settings(root: SparkSession) -> dict[str, str]:
    """Few shuffle partitions on one machine, since each task opens a file for every one of them."""
    if not is_embedded(root):
        return {}
    return {"spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 1)))}


def default_settings(master: str, directory: Path, jvm_options: str = "") -> dict[str, str]:
    """The settings of a context that this process starts, unless the user gave others.

    `jvm_options` are added to the options of the JVM.
    """
    logging = directory / "log4j2.properties"
    logging.write_text(_QUIET_LOGGING)
    # a JVM without memory would limp on with dead threads; let it exit, and another one starts
    java_options = (
        f"-Dlog4j2.configurationFile={logging.as_uri()} -Djava.io.tmpdir={directory}"
        f" -XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr {jvm_options}"
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
