"""A planned program that can run again and again: its rows are put into the plan, and its part is computed.

A plan without an exchange holds nothing of an earlier run but the one row that all inputs travel in,
so that row is overwritten in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pgtrickle.pipeline.in_place import Place
from pgtrickle.pipeline.names import bound
from pgtrickle.pipeline.small import packed, unfolded

_LEAVES: Final = frozenset({"LocalTableScan", "Scan OneRowRelation"})
"""Where a plan may begin so that it is known what it holds: rows of ours, constants, nothing."""


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A planned program, and the row in it that the inputs are read from."""

    frame: Any
    row: Any
    types: Any
    projection: Any
    part: Any
    partition: Any
    schema: pa.Schema

    def put(self, place: Place, inputs: Mapping[str, pa.Table]) -> None:
        """Let the plan read these rows when it runs next."""
        with place.rows(packed(inputs), self.types) as rows:
            self.row.copyFrom(self.projection.apply(rows.next()))

    def run(self, place: Place, most: int) -> pa.Table:
        """What the program makes of the rows; raise if that has more bytes than `most`."""
        batches = place.compute(self.part, self.partition, most)
        found = [pa.ipc.read_record_batch(pa.ipc.read_message(batch), self.schema) for batch in batches]
        return pa.Table.from_batches(found, self.schema)


def kept_plan(session: SparkSession, spark_sql: str, inputs: Mapping[str, pa.Table]) -> KeptPlan | None:
    """The program planned for inputs of any size, or nothing if its plan cannot be used twice."""
    jvm: Any = session._jvm
    held = session.createDataFrame(packed(inputs))
    reads = {name: unfolded(name) for name in inputs}
    frame = session.sql(bound(spark_sql, reads), packed=held.coalesce(1))
    try:
        scans = _scans(frame._jdf.queryExecution().executedPlan(), list(inputs))
        if scans is None:
            return None
        row = held._jdf.queryExecution().executedPlan().executeCollect()[0]
        for scan in scans:
            # all scans share one row: it is overwritten once
            scan.executeCollect()[0] = row
        types = held._jdf.schema()
        projection = jvm.org.apache.spark.sql.catalyst.expressions.UnsafeProjection.create(types)
        part = frame._jdf.toArrowBatchRdd()
        partitions = part.partitions()
        if len(partitions) != 1:
            return None
    except Py4JError:
        return None
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return KeptPlan(frame, row, types, projection, part, partitions[0], schema)


def _scans(plan: Any, names: list[str]) -> list[Any] | None:
    """The scans of the row that holds all inputs; None if the plan keeps rows of a run anywhere else."""
    scans = []
    for node in _walk(plan):
        if "Exchange" in node.nodeName() or not node.subqueries().isEmpty():
            return None
        if not node.children().isEmpty():
            continue
        fields = list(node.schema().fieldNames())
        if node.nodeName() not in _LEAVES or not (fields == names or set(fields).isdisjoint(names)):
            return None
        if fields == names:
            scans.append(node)
    return scans


def _walk(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for position in range(children.size()):
        yield from _walk(children.apply(position))
