"""A physical plan that runs again and again: each run puts its rows into the plan and computes its partition.

A plan without an exchange keeps nothing of an earlier run but the one row in which all inputs travel, so
that row is overwritten in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pgtrickle.pipeline.jvm import GatewayError
from pgtrickle.pipeline.jvm.driver_execution import DriverExecution, Unavailable
from pgtrickle.pipeline.jvm.failures import first_line
from pgtrickle.pipeline.names import bound
from pgtrickle.pipeline.small import input_rows_sql, pack_inputs

_LEAVES: Final = frozenset({"LocalTableScan", "Scan OneRowRelation"})
"""Leaves of a plan whose content is known: our own rows, constants, or nothing."""


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """A planned program, and the row in it from which the inputs are read."""

    frame: Any
    row: Any
    types: Any
    projection: Any
    rdd: Any
    partition: Any
    schema: pa.Schema

    def put(self, execution: DriverExecution, inputs: Mapping[str, pa.Table]) -> None:
        """Make the next run read these rows."""
        with execution.rows(pack_inputs(inputs), self.types) as rows:
            self.row.copyFrom(self.projection.apply(rows.next()))

    def run(self, execution: DriverExecution, most: int) -> pa.Table:
        """The result of the program; raise TooMuch if it has more than `most` bytes."""
        batches = execution.compute(self.rdd, self.partition, most)
        found = [pa.ipc.read_record_batch(pa.ipc.read_message(batch), self.schema) for batch in batches]
        return pa.Table.from_batches(found, self.schema)


def plan_in_driver(session: SparkSession, spark_sql: str, inputs: Mapping[str, pa.Table]) -> CachedPlan:
    """Plan a program for inputs of any size; raise Unavailable if its plan cannot be used twice."""
    jvm: Any = session._jvm
    held = session.createDataFrame(pack_inputs(inputs))
    reads = {name: input_rows_sql(name) for name in inputs}
    frame = session.sql(bound(spark_sql, reads), packed=held.coalesce(1))
    try:
        scans = _input_scans(frame._jdf.queryExecution().executedPlan(), list(inputs))
        row = held._jdf.queryExecution().executedPlan().executeCollect()[0]
        for scan in scans:
            # all scans share one row, so overwriting it once is enough
            scan.executeCollect()[0] = row
        types = held._jdf.schema()
        projection = jvm.org.apache.spark.sql.catalyst.expressions.UnsafeProjection.create(types)
        rdd = frame._jdf.toArrowBatchRdd()
        partitions = rdd.partitions()
    except GatewayError as failure:
        raise Unavailable(f"its plan cannot be inspected ({first_line(failure)})") from failure
    if len(partitions) != 1:
        raise Unavailable(f"its plan has {len(partitions)} partitions")
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return CachedPlan(frame, row, types, projection, rdd, partitions[0], schema)


def _input_scans(plan: Any, names: list[str]) -> list[Any]:
    """The scans of the row that holds all inputs; raise if the plan keeps rows of a run anywhere else."""
    scans = []
    for node in _walk(plan):
        if "Exchange" in node.nodeName():
            raise Unavailable("its plan has an exchange")
        if not node.subqueries().isEmpty():
            raise Unavailable("its plan has a subquery")
        if not node.children().isEmpty():
            continue
        fields = list(node.schema().fieldNames())
        if node.nodeName() not in _LEAVES or not (fields == names or set(fields).isdisjoint(names)):
            raise Unavailable(f"its plan reads from {node.nodeName()}")
        if fields == names:
            scans.append(node)
    return scans


def _walk(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for position in range(children.size()):
        yield from _walk(children.apply(position))
