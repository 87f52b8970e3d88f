"""The process of the JVM behind a PySpark session: whether it is alive, and how to discard a dead one.

PySpark keeps its gateway, context and session in class attributes and hands them to every caller that asks
for a session. A dead JVM must therefore be removed from all of them before a new one can start in this
process.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

OUT_OF_MEMORY: Final = 3
"""The exit code of a JVM that runs with -XX:+ExitOnOutOfMemoryError and has no memory left."""
_REAP_SECONDS: Final = 10.0


def is_remote(session: SparkSession) -> bool:
    """Whether the session uses Spark Connect, so that its driver is not reachable through a gateway."""
    return not hasattr(session, "_jsparkSession")


def jvm_process(session: SparkSession) -> subprocess.Popen[bytes] | None:
    """The process of the session's JVM, if this process started it."""
    if is_remote(session):
        return None
    gateway = getattr(session.sparkContext, "_gateway", None)
    # getattr on a gateway returns a JVM object for any name, so look at its own attributes
    found = vars(gateway).get("proc") if gateway is not None else None
    return found if isinstance(found, subprocess.Popen) else None


def why_dead(session: SparkSession, process: subprocess.Popen[bytes] | None) -> str | None:
    """Why the session cannot be used any more; None if it answers and its context is running."""
    if process is not None and process.poll() is not None:
        return describe_exit(process)
    try:
        if is_remote(session):
            return "its session was closed" if getattr(session, "is_stopped", False) else None
        context: Any = session.sparkContext._jsc
        return "its context was stopped" if context is None or context.sc().isStopped() else None
    except (Py4JError, OSError, EOFError, AttributeError) as failure:
        return f"it cannot be reached ({type(failure).__name__})"


def describe_exit(process: subprocess.Popen[bytes]) -> str:
    """How the JVM ended, as text for an error message."""
    code = process.returncode
    if code is None:
        return "its JVM does not answer"
    if code == OUT_OF_MEMORY:
        return "its JVM ran out of memory"
    if code < 0:
        return f"its JVM was ended by {signal.Signals(-code).name}"
    return f"its JVM exited with code {code}"


def ping(session: SparkSession) -> None:
    """Make a call into the JVM. Returns once it has answered; raises if it cannot be reached."""
    jvm: Any = session._jvm
    jvm.java.lang.System.currentTimeMillis()


@dataclass(frozen=True, slots=True)
class HeapUsage:
    """The bytes of the heap of a JVM that are used, reserved from the system, and allowed."""

    used: int
    committed: int
    most: int


def heap_usage(session: SparkSession) -> HeapUsage | None:
    """Ask the JVM for its heap; None if the driver is remote. Waits for a JVM that does not answer."""
    if is_remote(session):
        return None
    jvm: Any = session._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    committed = int(runtime.totalMemory())
    return HeapUsage(committed - int(runtime.freeMemory()), committed, int(runtime.maxMemory()))


def resident_bytes(process: subprocess.Popen[bytes]) -> int | None:
    """The memory that the JVM occupies; None where the system does not say."""
    try:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def class_path(session: SparkSession) -> str:
    """Where the JVM looks for classes."""
    jvm: Any = session._jvm
    return str(jvm.java.lang.System.getProperty("java.class.path"))


def kill_jvm(process: subprocess.Popen[bytes]) -> None:
    """Kill the JVM unless it has exited. Threads that wait for an answer from it fail at once."""
    if process.poll() is None:
        # a process stopped by SIGSTOP reacts to no other signal
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS)


def detach_gateway(session: SparkSession) -> None:
    """Remove a dead JVM from PySpark, so that the next session starts a new one."""
    context: Any = session.sparkContext
    gateway: Any = context._gateway
    if gateway is None or id(gateway) != id(SparkContext._gateway):
        # a new gateway has already replaced it
        return
    if (server := getattr(context, "_accumulatorServer", None)) is not None:
        with suppress(Exception):
            server.shutdown()
    context._jsc = None
    with suppress(Exception):
        gateway.shutdown()
    with SparkContext._lock:
        if id(gateway) != id(SparkContext._gateway):
            # another thread started a new gateway while we waited for the lock
            return
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
