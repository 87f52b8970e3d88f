"""A planned program that can run again and again: its rows are put into the plan, and its job is run.

A plan without an exchange holds nothing of an earlier run but the one row that all inputs travel in,
so that row is overwritten in place. Plans that run together are one job: their parts are lined up,
each followed by a mark, so that it is seen whose rows are whose.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.util import _load_from_socket

from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.names import bound
from pgtrickle.pipeline.small import packed, unfolded

_LEAVES: Final = frozenset({"LocalTableScan", "Scan OneRowRelation"})
"""Where a plan may begin so that it is known what it holds: rows of ours, constants, nothing."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The way into the JVM that all plans of a session share."""

    session: SparkSession
    context: Any
    converters: Any
    settings: Any
    """Spark's tasks know the settings of a session only from properties of the thread that asks."""

    @classmethod
    def of(cls, session: SparkSession) -> Gate:
        jvm: Any = session._jvm
        settings = jvm.java.util.Properties()
        for name, value in session.conf.getAll.items():
            settings.setProperty(name, value)
        converters = getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$")
        return cls(session, session.sparkContext._jsc, getattr(converters, "MODULE$"), settings)


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A planned program, and the row in it that the inputs are read from."""

    frame: Any
    row: Any
    types: Any
    projection: Any
    parts: Any
    schema: pa.Schema

    def put(self, gate: Gate, inputs: Mapping[str, pa.Table]) -> None:
        """Let the plan read these rows when it runs next."""
        rows = packed(inputs)
        jvm: Any = gate.session._jvm
        with tempfile.NamedTemporaryFile(dir=gate.session.sparkContext._temp_dir) as file:
            with pa.ipc.new_stream(file.file, rows.schema) as stream:
                stream.write_table(rows)
            file.flush()
            batches = jvm.PythonSQLUtils.readArrowStreamFromFile(file.name)
            found = gate.converters.fromBatchIterator(batches, self.types, "UTC", False, False, None)
            self.row.copyFrom(self.projection.apply(found.next()))
            # asked at the end, it gives its memory back
            found.hasNext()


def kept_plan(gate: Gate, spark_sql: str, inputs: Mapping[str, pa.Table]) -> KeptPlan | None:
    """The program planned for inputs of any size, or nothing if its plan cannot be used twice."""
    session, jvm = gate.session, gate.session._jvm
    held = session.createDataFrame(packed(inputs))
    reads = {name: unfolded(name) for name in inputs}
    frame = session.sql(bound(spark_sql, reads), packed=held.coalesce(1))
    try:
        scans = _scans(frame._jdf.queryExecution().executedPlan(), list(inputs))
        if scans is None:
            return None
        row = held._jdf.queryExecution().executedPlan().executeCollect()[0]
        for scan in scans:
            # all scans share one row: it is sent to the task once, and overwritten once
            scan.executeCollect()[0] = row
        types = held._jdf.schema()
        expressions: Any = jvm.org.apache.spark.sql.catalyst.expressions  # type: ignore[union-attr]
        projection = expressions.UnsafeProjection.create(types)
        parts = frame._jdf.toArrowBatchRdd().toJavaRDD()
        if parts.getNumPartitions() != 1:
            return None
    except Py4JError:
        return None
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return KeptPlan(frame, row, types, projection, parts, schema)


def run_kept(gate: Gate, plans: Sequence[KeptPlan]) -> list[pa.Table]:
    """The rows of each plan, all computed in one job; the plans must be different ones."""
    if len(plans) == 1:
        return [_table(plans[0], _collected(gate, plans[0].parts))]
    marks = [gate.context.parallelize(_mark(gate, number), 1) for number in range(len(plans))]
    line = [part for plan, mark in zip(plans, marks, strict=True) for part in (plan.parts, mark)]
    tasks = min(len(plans), gate.session.sparkContext.defaultParallelism)
    found = _collected(gate, gate.context.union(_array(gate, line)).coalesce(tasks))
    return [
        _table(plan, batches) for plan, batches in zip(plans, _told_apart(found, len(plans)), strict=True)
    ]


def _told_apart(found: Sequence[bytes], count: int) -> list[list[bytes]]:
    """The batches before each mark; the marks must come in their order."""
    parts: list[list[bytes]] = [[]]
    for message in found:
        if len(message) > _MARK.size:
            parts[-1].append(message)
            continue
        (number,) = _MARK.unpack(message)
        if number != len(parts) - 1:
            break
        parts.append([])
    if len(parts) != count + 1 or parts.pop():
        raise SparkFailed("Spark gave the rows of several programs in another order than asked for")
    return parts


_MARK: Final = struct.Struct("!i")
"""Shorter than any batch of rows."""


def _mark(gate: Gate, number: int) -> Any:
    jvm: Any = gate.session._jvm
    marks = jvm.java.util.ArrayList()
    marks.add(_MARK.pack(number))
    return marks


def _array(gate: Gate, parts: Sequence[Any]) -> Any:
    gateway: Any = gate.session.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.org.apache.spark.api.java.JavaRDD, len(parts))
    for number, part in enumerate(parts):
        array[number] = part
    return array


def _collected(gate: Gate, parts: Any) -> list[bytes]:
    """Run the job; what it gives in the order of its parts."""
    jvm: Any = gate.session._jvm
    context = gate.context.sc()
    before = context.getLocalProperties()
    settings = before.clone()
    settings.putAll(gate.settings)
    context.setLocalProperties(settings)
    try:
        served = jvm.PythonRDD.collectAndServe(parts.rdd())
    finally:
        context.setLocalProperties(before)
    with _load_from_socket(served, cast(Any, _Messages())) as messages:
        return list(messages)


class _Messages:
    """Reads what Spark serves: the length of each message before it."""

    def load_stream(self, stream: Any) -> Iterator[bytes]:
        while len(head := stream.read(_MARK.size)) == _MARK.size:
            (length,) = _MARK.unpack(head)
            if length < 0:
                return
            yield stream.read(length)


def _table(plan: KeptPlan, batches: Sequence[bytes]) -> pa.Table:
    found = [pa.ipc.read_record_batch(pa.ipc.read_message(batch), plan.schema) for batch in batches]
    return pa.Table.from_batches(found, plan.schema)


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
