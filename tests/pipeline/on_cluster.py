"""Runs in a process of its own, with workers in other processes; prints what it staged as JSON.

One task dies after the commit of its rows, so that Spark runs it again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from pgtrickle.pipeline.distributed import (
    REPORT_COLUMNS,
    StagingTarget,
    plan_distributed,
    staged_by,
    task_writer,
)
from pgtrickle.pipeline.session import open_spark
from pgtrickle.pipeline.source import PartitionedQuery
from tests.fixtures.snapshots import open_snapshot
from tests.pipeline.relations import field


def main(master: str, dsn: str, marker: str) -> None:
    with open_spark(master) as spark, open_snapshot(dsn) as snapshot:
        store = task_writer(StagingTarget(dsn, "staged", run=7), spark.sources.addresses.of(dsn))

        def dies_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            reports = list(store(batches))
            try:
                Path(marker).touch(exist_ok=False)
            except FileExistsError:
                yield from reports
            else:
                os.kill(os.getpid(), signal.SIGKILL)

        queries = tuple(f"select n from generate_series({low}, {low + 9}) n" for low in (0, 10))
        query = PartitionedQuery(queries, (field("n", "int"),), snapshot.id)
        frame = plan_distributed(spark, "select n from t", {"t": query}, dsn)
        staged = staged_by(frame.mapInArrow(dies_once, REPORT_COLUMNS).collect())
    json.dump({"rows": staged.rows, "attempts": staged.attempts}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
