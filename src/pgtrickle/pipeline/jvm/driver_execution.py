"""Computes a plan in the driver: Spark's operators run in the calling thread, and no job is scheduled.

Spark computes each partition of a plan in a task, and scheduling a task takes several times as long as
computing a small window. So this module gives the operators what a task would give them: memory, the
session's settings, and a task context that tells them when they are done. Operators that have run here hold
state, so their plan can no longer be sent to a task, and a plan that failed here is not used again.

Memory: the operators draw from a memory manager of their own, not from the one that tasks share, where a
small window would have to wait or spill whenever a large job holds the memory. That is safe because little
enters it: `Programs` computes here only what has at most 4 MB of inputs, a few programs at a time, and a
result is fetched batch by batch up to the limit passed to `compute`.
"""

from __future__ import annotations

import io
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import IO, Any, Final

import pyarrow as pa
from py4j.clientserver import ClientServer  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.changes.memory import TooMuch, megabytes
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.jvm import GatewayError
from pgtrickle.pipeline.jvm.failures import first_line
from pgtrickle.pipeline.jvm.process import is_remote
from pgtrickle.pipeline.tags import current_tag

_MOST_INLINE: Final = 6000
"""Results with more bytes come through a file: the gateway would send them in two parts, the second late."""
_BATCHES_PER_CALL: Final = 4
"""How many batches are fetched from the JVM in one call."""
_LENGTH: Final = struct.Struct("!i")


class Unavailable(Exception):
    """Small programs cannot be computed in the driver; the text says why."""


@dataclass(frozen=True, slots=True)
class DriverExecution:
    """JVM classes and objects that computing needs, resolved once: each lookup takes a millisecond."""

    directory: str
    heap_bytes: int
    read_stream: Any
    rows_of: Any
    memory_manager: Any
    new_memory: Any
    new_context: Any
    new_metrics: Any
    contexts: Any
    new_bytes: Any
    new_data_stream: Any
    new_file: Any
    write: Any
    nothing: Any
    no_resources: Any
    settings: Any
    """Operators read the session's settings from the properties of their task."""
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _running: dict[int, tuple[str | None, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, session: SparkSession) -> DriverExecution:
        """Resolve what a session offers; raise Unavailable where something is missing."""
        if is_remote(session):
            raise Unavailable("Spark Connect does not let its clients reach the driver")
        # operators find their task context by the JVM thread, so each of our threads needs one of its own
        if not isinstance(getattr(session.sparkContext, "_gateway", None), ClientServer):
            raise Unavailable("PySpark's gateway does not give each Python thread a thread in the JVM")
        try:
            return cls._resolve(session)
        except (GatewayError, TypeError, AttributeError) as failure:
            raise Unavailable(
                f"Spark {session.version} has other internals ({first_line(failure)})"
            ) from failure

    @classmethod
    def _resolve(cls, session: SparkSession) -> DriverExecution:
        jvm: Any = session._jvm
        spark, java = jvm.org.apache.spark, jvm.java.io
        settings = jvm.java.util.Properties()
        for name, value in session.conf.getAll.items():
            settings.setProperty(name, value)
        managers = _scala_object(spark.memory, "UnifiedMemoryManager")
        return cls(
            directory=session.sparkContext._temp_dir,
            heap_bytes=jvm.java.lang.Runtime.getRuntime().maxMemory(),
            read_stream=jvm.PythonSQLUtils.readArrowStreamFromFile,
            rows_of=_scala_object(spark.sql.execution.arrow, "ArrowConverters").fromBatchIterator,
            memory_manager=managers.apply(session.sparkContext._jsc.sc().conf(), 1),
            new_memory=spark.memory.TaskMemoryManager,
            new_context=spark.TaskContextImpl,
            new_metrics=spark.executor.TaskMetrics,
            contexts=_scala_object(spark, "TaskContext"),
            new_bytes=java.ByteArrayOutputStream,
            new_data_stream=java.DataOutputStream,
            new_file=java.FileOutputStream,
            write=jvm.PythonRDD.writeIteratorToStream,
            nothing=_scala_object(jvm.scala, "None"),
            no_resources=_scala_object(jvm.scala.collection.immutable, "Map").empty(),
            settings=settings,
        )

    @contextmanager
    def rows(self, table: pa.Table, types: Any) -> Iterator[Any]:
        """The rows of a table as an iterator in the JVM."""
        with tempfile.NamedTemporaryFile(dir=self.directory) as file:
            with pa.ipc.new_stream(file.file, table.schema) as stream:
                stream.write_table(table)
            file.flush()
            found = self.rows_of(self.read_stream(file.name), types, "UTC", False, False, None)
            yield found
            # the iterator frees its memory when it is asked at its end
            found.hasNext()

    def compute(self, rdd: Any, partition: Any, most: int) -> list[bytes]:
        """The batches of a plan's only partition, as Arrow messages; raise TooMuch past `most` bytes."""
        found: list[bytes] = []
        size = 0
        with self._task() as context:
            batches = rdd.iterator(partition, context)
            while True:
                portion = self._next_batches(batches)
                found += portion
                size += sum(map(len, portion))
                if len(portion) < _BATCHES_PER_CALL:
                    return found
                if size > most:
                    raise TooMuch(f"a result of more than {megabytes(most)}")

    def _next_batches(self, batches: Any) -> list[bytes]:
        """The next few batches, so that the JVM never holds all of them."""
        buffer = self.new_bytes()
        self.write(batches.take(_BATCHES_PER_CALL), self.new_data_stream(buffer))
        if buffer.size() <= _MOST_INLINE:
            return list(_messages(io.BytesIO(buffer.toByteArray())))
        with tempfile.NamedTemporaryFile(dir=self.directory) as file:
            target = self.new_file(file.name)
            buffer.writeTo(target)
            target.close()
            return list(_messages(file.file))

    def interrupt(self, tag: str | None = None) -> None:
        """Cancel what runs under this tag, or everything. Operators stop when they next check for it."""
        for own, context in list(self._running.values()):
            if tag is None or own == tag:
                context.markInterrupted("cancelled")

    @contextmanager
    def _task(self) -> Iterator[Any]:
        number = next(self._numbers)
        memory = self.new_memory(self.memory_manager, number)
        context = self.new_context(
            0, 0, 0, number, 0, 1, memory, self.settings, None, self.new_metrics(), None, self.no_resources
        )
        self._running[number] = (current_tag(), context)
        self.contexts.setTaskContext(context)
        try:
            yield context
        except (PySparkException, GatewayError) as failure:
            if context.isInterrupted():
                raise SparkFailed("a delta program was canceled") from failure
            raise
        finally:
            del self._running[number]
            try:
                context.markTaskCompleted(self.nothing)
            finally:
                self.contexts.unset()
                memory.cleanUpAllAllocatedMemory()


def _scala_object(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _messages(stream: IO[bytes]) -> Iterator[bytes]:
    """The messages in a stream in which the length of each stands before it."""
    while head := stream.read(_LENGTH.size):
        yield stream.read(*_LENGTH.unpack(head))
