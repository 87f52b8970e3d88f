"""The distributed path: tasks read their parts of the inputs and copy their results into staging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

from pgtrickle.pipeline.jvm.failures import JOB_FAILED, spark_failure
from pgtrickle.pipeline.names import bound
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.source import PartitionedQuery
from pgtrickle.pipeline.tags import tagged_jobs
from pgtrickle.pipeline.task_address import TaskAddress
from pgtrickle.postgres.arrow import write_batches
from pgtrickle.postgres.connection import sql

Given: TypeAlias = PartitionedQuery | pa.Table | DataFrame
"""An input that tasks read themselves, that the driver holds, or that it has spooled for them."""

STAGING_SCHEMA: Final = "pgtrickle_state"
_REPORT: Final = pa.schema([("part", pa.int32()), ("attempt", pa.int64()), ("rows", pa.int64())])
REPORT_COLUMNS: Final = "part int, attempt bigint, rows bigint"


@dataclass(frozen=True, slots=True)
class StagingTarget:
    """Where results go: a table of `pgtrickle_state` with columns run, part, attempt and the result's."""

    dsn: str = field(repr=False)
    table: str
    run: int


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a run in staging.

    Only rows of these (part, attempt) pairs count; a task that Spark repeated may have left others.
    """

    rows: int
    attempts: tuple[tuple[int, int], ...]


def run_distributed(
    spark: Spark,
    spark_sql: str,
    inputs: Mapping[str, Given],
    staging: StagingTarget,
    *,
    writers: int | None = None,
) -> Staged:
    """Compute `spark_sql`, which reads the inputs by name, and leave its rows in staging.

    At most `writers` tasks write at a time, each on a connection of its own.
    """
    try:
        rows = plan_distributed(spark, spark_sql, inputs, staging.dsn)
        if writers is not None:
            rows = rows.coalesce(writers)
        with tagged_jobs(spark.large):
            store = task_writer(staging, spark.sources.addresses.of(staging.dsn))
            reports = rows.mapInArrow(store, REPORT_COLUMNS).collect()
    except Exception as failure:
        spark.check(failure)
        if isinstance(failure, JOB_FAILED):
            raise spark_failure(failure) from failure
        raise
    return staged_by(reports)


def staged_by(reports: Iterable[Row]) -> Staged:
    """The sum of the reports of the tasks."""
    told = [(int(report["part"]), int(report["attempt"]), int(report["rows"])) for report in reports]
    return Staged(sum(rows for *_, rows in told), tuple(sorted((part, attempt) for part, attempt, _ in told)))


def plan_distributed(spark: Spark, spark_sql: str, inputs: Mapping[str, Given], dsn: str) -> DataFrame:
    """The program as a frame whose tasks read the database themselves."""
    frames: dict[str, DataFrame] = {}
    reads: dict[str, str] = {}
    for number, (name, rows) in enumerate(inputs.items()):
        slot = f"input_{number}"
        frames[slot] = _frame(spark, rows, dsn)
        reads[name] = f"select * from {{{slot}}}"  # noqa: S608 (a name of ours)
    return spark.large.sql(bound(spark_sql, reads) if reads else spark_sql, None, **frames)


def _frame(spark: Spark, rows: Given, dsn: str) -> DataFrame:
    if isinstance(rows, PartitionedQuery):
        return spark.sources.frame(dsn, rows)
    return spark.large.createDataFrame(rows) if isinstance(rows, pa.Table) else rows


def task_writer(
    staging: StagingTarget, address: TaskAddress
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that each task runs on its rows: it stores them in one transaction, then reports it.

    However often Spark repeats a task, the report of only one attempt reaches the driver, and rows that other
    attempts committed are never read. The function is sent to the tasks, so nothing in it is a secret.
    """
    run, name = staging.run, staging.table

    def store(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(filter(len, batches := iter(batches)), None)
        if first is None:
            return
        context = TaskContext.get()
        assert context is not None
        part, attempt = context.partitionId(), context.taskAttemptId()
        marks = {"run": run, "part": part, "attempt": attempt}
        table = sql.Identifier(STAGING_SCHEMA, name)
        with address.connect() as connection:
            marked = (_add_marks(batch, marks) for batch in chain((first,), batches))
            rows = write_batches(connection, table, [*marks, *first.schema.names], marked)
        yield pa.RecordBatch.from_pylist([{"part": part, "attempt": attempt, "rows": rows}], _REPORT)

    return store


def _add_marks(batch: pa.RecordBatch, marks: Mapping[str, int]) -> pa.RecordBatch:
    """The batch with a constant column for each mark in front."""
    constants = [pa.repeat(pa.scalar(value, pa.int64()), len(batch)) for value in marks.values()]
    return pa.RecordBatch.from_arrays([*constants, *batch.columns], [*marks, *batch.schema.names])
