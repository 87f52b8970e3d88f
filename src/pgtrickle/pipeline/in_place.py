"""Computing a plan where we are: its operators run in the calling thread, and no job is scheduled.

Spark computes the part of a plan in a task, and to schedule one takes it several times as long as to compute
a small window. So we give the operators what a task would: memory, the settings of the session, somebody
who tells them when they are done. What they hold is then theirs and no copy for one task, so that a plan
that has run here cannot be sent to a task any more, and one that has failed here is not used again.
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
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgtrickle.changes.memory import TooMuch, megabytes
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.tags import current_tag

_MOST_INLINE: Final = 6000
"""More bytes than the gateway sends at once come by a file: their second part would wait for a late reply."""
_PORTION: Final = 4
"""So many batches are taken at a time."""
_LENGTH: Final = struct.Struct("!i")


@dataclass(frozen=True, slots=True)
class Place:
    """What computing needs of the JVM, found once: to find a class by its name takes a millisecond."""

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
    """Operators know the settings of a session only from properties of their task."""
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _running: dict[int, tuple[str | None, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, session: SparkSession) -> Place | None:
        """The place of a session; None where Spark does not let us: it is remote, or made otherwise."""
        # a thread of ours must have a thread of its own in the JVM, for that is where an operator looks
        if not isinstance(getattr(session.sparkContext, "_gateway", None), ClientServer):
            return None
        try:
            return cls._found(session)
        except (Py4JError, TypeError):
            return None

    @classmethod
    def _found(cls, session: SparkSession) -> Place:
        jvm: Any = session._jvm
        spark, java = jvm.org.apache.spark, jvm.java.io
        settings = jvm.java.util.Properties()
        for name, value in session.conf.getAll.items():
            settings.setProperty(name, value)
        managers = _object(spark.memory, "UnifiedMemoryManager")
        return cls(
            directory=session.sparkContext._temp_dir,
            heap_bytes=jvm.java.lang.Runtime.getRuntime().maxMemory(),
            read_stream=jvm.PythonSQLUtils.readArrowStreamFromFile,
            rows_of=_object(spark.sql.execution.arrow, "ArrowConverters").fromBatchIterator,
            memory_manager=managers.apply(session.sparkContext._jsc.sc().conf(), 1),
            new_memory=spark.memory.TaskMemoryManager,
            new_context=spark.TaskContextImpl,
            new_metrics=spark.executor.TaskMetrics,
            contexts=_object(spark, "TaskContext"),
            new_bytes=java.ByteArrayOutputStream,
            new_data_stream=java.DataOutputStream,
            new_file=java.FileOutputStream,
            write=jvm.PythonRDD.writeIteratorToStream,
            nothing=_object(jvm.scala, "None"),
            no_resources=_object(jvm.scala.collection.immutable, "Map").empty(),
            settings=settings,
        )

    @contextmanager
    def rows(self, table: pa.Table, types: Any) -> Iterator[Any]:
        """The rows of a table, as an iterator in the JVM."""
        with tempfile.NamedTemporaryFile(dir=self.directory) as file:
            with pa.ipc.new_stream(file.file, table.schema) as stream:
                stream.write_table(table)
            file.flush()
            found = self.rows_of(self.read_stream(file.name), types, "UTC", False, False, None)
            yield found
            # asked at the end, it gives its memory back
            found.hasNext()

    def compute(self, part: Any, partition: Any, most: int) -> list[bytes]:
        """The batches that the only part of a plan has, as Arrow messages; raise if they are too many."""
        found: list[bytes] = []
        size = 0
        with self._task() as context:
            batches = part.iterator(partition, context)
            while True:
                portion = self._portion(batches)
                found += portion
                size += sum(map(len, portion))
                if len(portion) < _PORTION:
                    return found
                if size > most:
                    raise TooMuch(f"a result of more than {megabytes(most)}")

    def _portion(self, batches: Any) -> list[bytes]:
        """The next few batches, so that the JVM never holds all of them."""
        written = self.new_bytes()
        self.write(batches.take(_PORTION), self.new_data_stream(written))
        if written.size() <= _MOST_INLINE:
            return list(_messages(io.BytesIO(written.toByteArray())))
        with tempfile.NamedTemporaryFile(dir=self.directory) as file:
            target = self.new_file(file.name)
            written.writeTo(target)
            target.close()
            return list(_messages(file.file))

    def interrupt(self, tag: str | None = None) -> None:
        """Let what runs, under a tag or at all, fail as soon as its operators ask whether to go on."""
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
        except (PySparkException, Py4JError) as failure:
            if context.isInterrupted():
                raise SparkFailed("a delta program was cancelled") from failure
            raise
        finally:
            del self._running[number]
            try:
                context.markTaskCompleted(self.nothing)
            finally:
                self.contexts.unset()
                memory.cleanUpAllAllocatedMemory()


def _object(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _messages(stream: IO[bytes]) -> Iterator[bytes]:
    """What was written: the length of each message before it."""
    while head := stream.read(_LENGTH.size):
        yield stream.read(*_LENGTH.unpack(head))
