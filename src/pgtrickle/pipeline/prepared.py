"""Programs whose plans are kept: a refresh puts its rows into the plan and runs it again.

To analyse, optimize and plan a program takes Spark several times as long as to compute a small window.
A plan without an exchange holds nothing of an earlier run but the one row that all inputs travel in,
so that row is overwritten in place. Where a plan has more to it, it is made anew every time.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from pgtrickle.pipeline.names import bound
from pgtrickle.pipeline.small import packed, plan_small, unfolded

MAX_KEPT: Final = 256
"""How many programs are kept; the one that has not run for longest goes first."""
_MAX_BYTES: Final = 4 << 20
"""Larger inputs are not kept in memory for the sake of a plan."""
_LEAVES: Final = frozenset({"LocalTableScan", "Scan OneRowRelation"})
"""Where a plan may begin so that it is known what it holds: rows of ours, constants, nothing."""


@dataclass(slots=True)
class _Prepared:
    """A planned program, and the row in it that the inputs are read from."""

    frame: DataFrame
    row: Any
    schema: str
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, session: SparkSession, inputs: pa.Table) -> pa.Table:
        with self.lock:
            self.row.copyFrom(_row_of(_frame_of(session, inputs, self.schema)))
            return self.frame.toArrow()


class _Use(Enum):
    """How a program without a kept plan will be used next: the first run plans for just its rows."""

    FIRST = auto()
    SECOND = auto()
    ALWAYS_ANEW = auto()


_Known = _Prepared | _Use


class Programs:
    """The programs of a session that have been planned."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # a remote session shows nothing of its plans
        self._can_keep = hasattr(session, "_jsparkSession")
        self._kept: OrderedDict[tuple[object, ...], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, spark_sql: str, inputs: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a program over the inputs."""
        if not self._can_keep or not inputs or sum(rows.nbytes for rows in inputs.values()) > _MAX_BYTES:
            return plan_small(self._session, spark_sql, inputs).toArrow()
        key = (spark_sql, *((name, rows.schema) for name, rows in inputs.items()))
        prepared = self._found(key, spark_sql, inputs)
        if prepared is None:
            return plan_small(self._session, spark_sql, inputs).toArrow()
        return prepared.run(self._session, packed(inputs))

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def clear(self) -> None:
        """Plan everything anew."""
        with self._lock:
            self._kept.clear()

    def _found(
        self, key: tuple[object, ...], spark_sql: str, inputs: Mapping[str, pa.Table]
    ) -> _Prepared | None:
        with self._lock:
            known = self._kept.get(key, _Use.FIRST)
        if known is _Use.FIRST:
            found: _Known = _Use.SECOND
        elif known is _Use.SECOND:
            found = _prepare(self._session, spark_sql, inputs) or _Use.ALWAYS_ANEW
        else:
            found = known
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return found if isinstance(found, _Prepared) else None


def _prepare(session: SparkSession, spark_sql: str, inputs: Mapping[str, pa.Table]) -> _Prepared | None:
    """The program planned for inputs of any size, or nothing if its plan cannot be used twice."""
    held = session.createDataFrame(packed(inputs))
    reads = {name: unfolded(name) for name in inputs}
    frame = session.sql(bound(spark_sql, reads), packed=held.coalesce(1))
    try:
        scans = _scans(frame._jdf.queryExecution().executedPlan(), list(inputs))
        if scans is None:
            return None
        row = _row_of(held._jdf)
        for scan in scans:
            # all scans share one row: it is sent to the task once, and overwritten once
            scan.executeCollect()[0] = row
    except Py4JError:
        return None
    return _Prepared(frame, row, held.schema.json())


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


def _row_of(jvm_frame: Any) -> Any:
    return jvm_frame.queryExecution().executedPlan().executeCollect()[0]


def _frame_of(session: SparkSession, inputs: pa.Table, schema: str) -> Any:
    """The inputs as a frame of the JVM: what `createDataFrame` does, without its many questions."""
    jvm: Any = session._jvm
    with tempfile.NamedTemporaryFile(dir=session.sparkContext._temp_dir) as file:
        with pa.ipc.new_stream(file.file, inputs.schema) as stream:
            stream.write_table(inputs)
        file.flush()
        batches = jvm.PythonSQLUtils.readArrowStreamFromFile(file.name)
        return jvm.PythonSQLUtils.toDataFrame(batches, schema, session._jsparkSession)
