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
from pgtrickle.pipeline.jvm.driver_execution import DriverExecution, PlanRun, Unavailable
from pgtrickle.pipeline.jvm.failures import first_line
from pgtrickle.pipeline.names import bound
from pgtrickle.pipeline.small import input_rows_sql, pack_inputs

_LEAVES: Final = frozenset({"LocalTableScan", "Scan OneRowRelation"})
"""Leaves of a plan whose content is known: our own rows, constants, or nothing."""


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """A planned program. The JVM forgets it when `registered` is gone."""

    registered: Any
    number: int
    schema: pa.Schema

    def run_with(self, inputs: Mapping[str, pa.Table], most: int) -> PlanRun:
        """A run over these rows, whose result has at most `most` bytes."""
        return PlanRun(self.number, self.schema, pack_inputs(inputs), most)

    def first_run(self, most: int) -> PlanRun:
        """A run over the rows that it was planned with."""
        return PlanRun(self.number, self.schema, None, most)


def plan_in_driver(
    session: SparkSession, execution: DriverExecution, spark_sql: str, inputs: Mapping[str, pa.Table]
) -> CachedPlan:
    """Plan a program for inputs of any size; raise Unavailable if its plan cannot be used twice."""
    held = session.createDataFrame(pack_inputs(inputs))
    reads = {name: input_rows_sql(name) for name in inputs}
    frame = session.sql(bound(spark_sql, reads), packed=held.coalesce(1))
    try:
        scans = _input_scans(frame._jdf.queryExecution().executedPlan(), list(inputs))
        row = held._jdf.queryExecution().executedPlan().executeCollect()[0]
        for scan in scans:
            # all scans share one row, so overwriting it once is enough
            scan.executeCollect()[0] = row
        rdd = frame._jdf.toArrowBatchRdd()
        partitions = rdd.getNumPartitions()
        registered = execution.register(row, held._jdf.schema(), rdd)
    except GatewayError as failure:
        raise Unavailable(f"its plan cannot be inspected ({first_line(failure)})") from failure
    if partitions != 1:
        raise Unavailable(f"its plan has {partitions} partitions")
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return CachedPlan(registered, registered.number(), schema)


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
