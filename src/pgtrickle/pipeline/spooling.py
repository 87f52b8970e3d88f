"""Spools rows that only the driver can read, and that are too many for it, to Spark's disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from pgtrickle.changes.memory import cost
from pgtrickle.pipeline.session import Spark

PORTION: Final = 32 << 20
"""How many bytes of rows the driver holds while it spools."""


def spool(spark: Spark, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> DataFrame:
    """The rows as a frame that no longer needs the driver's memory."""
    parts = [_checkpoint(spark, portion) for portion in _portions(batches, schema)]
    return reduce(DataFrame.unionAll, parts)


def _checkpoint(spark: Spark, rows: pa.Table) -> DataFrame:
    # a checkpoint drops the lineage of its rows, so the driver can free them
    return spark.large.createDataFrame(rows).localCheckpoint(True, StorageLevel.DISK_ONLY)


def _portions(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """At least one portion, which may be empty."""
    held: list[pa.RecordBatch] = []
    size, is_first = 0, True
    for batch in batches:
        held.append(batch)
        size += cost(batch)
        if size >= PORTION:
            yield pa.Table.from_batches(held, schema)
            held, size, is_first = [], 0, False
    if held or is_first:
        yield pa.Table.from_batches(held, schema)
