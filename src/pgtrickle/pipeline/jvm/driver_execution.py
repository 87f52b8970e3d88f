"""Computes plans in the driver: Spark's operators run without a job.

Spark computes each partition of a plan in a task, and scheduling a task takes several times as long as
computing a small window. So `PlanRunner.java` gives the operators what a task would give them: memory, the
session's settings, and a task context that tells them when they are done. It runs in the JVM because each
call from Python takes about as long as computing a small program: here, one call takes in the rows of several
programs and returns their results. Operators that have run here hold state, so their plan can no longer be
sent to a task, and a plan that failed here is not used again.

Memory: the operators draw from a memory manager of their own, not from the one that tasks share, where a
small window would have to wait or spill whenever a large job holds the memory. That is safe because little
enters it: `Programs` computes here only what has at most 4 MB of inputs, a few programs at a time, and a
result ends at the limit of its program.
"""

from __future__ import annotations

import io
import os
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias, assert_never

import pyarrow as pa
from py4j.clientserver import ClientServer  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from pgtrickle.changes.memory import TooMuch, megabytes
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.jvm import GatewayError
from pgtrickle.pipeline.jvm.failures import first_line
from pgtrickle.pipeline.jvm.process import is_remote
from pgtrickle.pipeline.tags import current_tag

MAX_THREADS: Final = 4
"""How many programs of one call are computed at once, if the machine has as many cores."""
_SOURCE: Final = Path(__file__).parent / "PlanRunner.java"
_CLASS: Final = "pgtrickle.PlanRunner"
_MOST_INLINE: Final = 6000
"""More bytes than this travel in a file: the gateway would send them in two parts, the second late."""
_COUNT: Final = struct.Struct("!i")
_REQUEST: Final = struct.Struct("!iqi")
"""The number of a plan, the most bytes that its result may have, and the length of its rows."""
_ANSWER: Final = struct.Struct("!bi")
"""What became of a program, and the length of what follows."""
_ROWS_IN_PLAN: Final = -1
"""The length that stands for no rows."""
_CALLS: Final = count(1)


class _Status(IntEnum):
    """What became of a program; PlanRunner.java has the same numbers."""

    INLINE = 0
    IN_FILE = 1
    FAILED = 2
    CANCELED = 3
    TOO_MUCH = 4


class Unavailable(Exception):
    """Small programs cannot be computed in the driver; the text says why."""


class PlanFailed(Exception):
    """A plan failed in the driver; the text is that of the error in the JVM."""


class PlanRun(NamedTuple):
    """One run of a registered plan: its rows, or None if they are in the plan already."""

    plan: int
    schema: pa.Schema
    rows: pa.Table | None
    most: int


Outcome: TypeAlias = pa.Table | PlanFailed | SparkFailed | TooMuch


@dataclass(frozen=True, slots=True)
class DriverExecution:
    """The gateway to `PlanRunner`, which computes plans in the JVM."""

    runner: Any
    heap_bytes: int
    directory: str

    @classmethod
    def of(cls, session: SparkSession) -> DriverExecution:
        """Start it in the JVM of a session; raise Unavailable where that is impossible."""
        if is_remote(session):
            raise Unavailable("Spark Connect does not let its clients reach the driver")
        # the plans are computed while Python threads wait for their answers side by side
        if not isinstance(getattr(session.sparkContext, "_gateway", None), ClientServer):
            raise Unavailable("PySpark's gateway does not give each Python thread a thread in the JVM")
        try:
            return cls._start(session)
        except (GatewayError, TypeError, AttributeError) as failure:
            raise Unavailable(
                f"Spark {session.version} has other internals ({first_line(failure)})"
            ) from failure

    @classmethod
    def _start(cls, session: SparkSession) -> DriverExecution:
        jvm: Any = session._jvm
        # operators read the session's settings from the properties of their task
        settings = jvm.java.util.Properties()
        for name, value in session.conf.getAll.items():
            settings.setProperty(name, value)
        gateway: Any = session.sparkContext._gateway
        arguments = gateway.new_array(jvm.java.lang.Object, 4)
        threads = min(MAX_THREADS, os.cpu_count() or 1)
        given = (session.sparkContext._jsc.sc().conf(), settings, threads, _MOST_INLINE)
        for position, value in enumerate(given):
            arguments[position] = value
        return cls(
            runner=_constructor(gateway).newInstance(arguments),
            heap_bytes=jvm.java.lang.Runtime.getRuntime().maxMemory(),
            directory=session.sparkContext._temp_dir,
        )

    def register(self, row: Any, types: Any, rdd: Any) -> Any:
        """Register a plan by the row in it that holds the inputs; it can be run while the answer is held."""
        return self.runner.register(row, types, rdd)

    def run(self, runs: Sequence[PlanRun]) -> list[Outcome]:
        """Compute plans side by side; a plan may occur only once, and nobody else may run it meanwhile."""
        message = _message(runs)
        # each call has names of its own for results that travel in files
        results = f"{self.directory}/results-{next(_CALLS)}-"
        if len(message) <= _MOST_INLINE:
            answer = self.runner.run(message, results, current_tag())
        else:
            with tempfile.NamedTemporaryFile(dir=self.directory) as file:
                file.write(message)
                file.flush()
                answer = self.runner.runFile(file.name, results, current_tag())
        stream = io.BytesIO(answer)
        return [_outcome(stream, run, Path(f"{results}{number}")) for number, run in enumerate(runs)]

    def interrupt(self, tag: str | None = None) -> None:
        """Cancel what runs under this tag, or everything. Operators stop when they next check for it."""
        self.runner.interrupt(tag)


@lru_cache(maxsize=1)
def _constructor(gateway: Any) -> Any:
    """The constructor of PlanRunner, compiled once in a JVM: the gateway finds methods by a class name."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE.read_text(encoding="utf-8"))
    (constructor,) = compiler.getClassLoader().loadClass(_CLASS).getConstructors()
    return constructor


def _message(runs: Sequence[PlanRun]) -> bytes:
    """The runs as PlanRunner reads them."""
    parts = [_COUNT.pack(len(runs))]
    for run in runs:
        if run.rows is None:
            parts.append(_REQUEST.pack(run.plan, run.most, _ROWS_IN_PLAN))
            continue
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, run.rows.schema) as stream:
            stream.write_table(run.rows)
        rows = sink.getvalue()
        parts += (_REQUEST.pack(run.plan, run.most, len(rows)), rows)
    return b"".join(parts)


def _outcome(stream: IO[bytes], run: PlanRun, file: Path) -> Outcome:
    status, length = _ANSWER.unpack(stream.read(_ANSWER.size))
    found = stream.read(length)
    match _Status(status):
        case _Status.INLINE:
            return _table(io.BytesIO(found), run.schema)
        case _Status.IN_FILE:
            with file.open("rb") as batches:
                file.unlink()
                return _table(batches, run.schema)
        case _Status.FAILED:
            return PlanFailed(found.decode(errors="replace"))
        case _Status.CANCELED:
            return SparkFailed("a delta program was canceled")
        case _Status.TOO_MUCH:
            return TooMuch(f"a result of more than {megabytes(run.most)}")
        case other:
            assert_never(other)


def _table(stream: IO[bytes], schema: pa.Schema) -> pa.Table:
    """The batches of a stream in which the length of each stands before it."""
    batches = []
    while head := stream.read(_COUNT.size):
        message = pa.ipc.read_message(stream.read(*_COUNT.unpack(head)))
        batches.append(pa.ipc.read_record_batch(message, schema))
    return pa.Table.from_batches(batches, schema)
