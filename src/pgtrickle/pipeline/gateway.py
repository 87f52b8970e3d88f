"""The JVM behind a PySpark session: whether it lives, and how to discard one that is dead.

PySpark keeps its gateway, its context and its session in class attributes, and gives them to everybody who
asks for a session. A dead JVM therefore has to be removed from all of them before a new one can start in the
same process.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

OUT_OF_MEMORY: Final = 3
"""The exit code of a JVM that runs with -XX:+ExitOnOutOfMemoryError and has no memory left."""
_REAP_SECONDS: Final = 10.0


def is_remote(session: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, which has no JVM in this machine."""
    return not hasattr(session, "_jsparkSession")


def process_of(session: SparkSession) -> subprocess.Popen[bytes] | None:
    """The process of the session's JVM, if this process started it."""
    if is_remote(session):
        return None
    gateway = getattr(session.sparkContext, "_gateway", None)
    # a gateway answers for any attribute with an object of the JVM
    found = vars(gateway).get("proc") if gateway is not None else None
    return found if isinstance(found, subprocess.Popen) else None


def why_dead(session: SparkSession, process: subprocess.Popen[bytes] | None) -> str | None:
    """What is wrong with the session's Spark; None if it answers and its context runs."""
    if process is not None and process.poll() is not None:
        return ending_of(process)
    try:
        if is_remote(session):
            return "its session was closed" if getattr(session, "is_stopped", False) else None
        context: Any = session.sparkContext._jsc
        return "its context was stopped" if context is None or context.sc().isStopped() else None
    except (Py4JError, OSError, EOFError, AttributeError) as failure:
        return f"it cannot be reached ({type(failure).__name__})"


def ending_of(process: subprocess.Popen[bytes]) -> str:
    """How the JVM ended, in words."""
    code = process.returncode
    if code is None:
        return "its JVM does not answer"
    if code == OUT_OF_MEMORY:
        return "its JVM ran out of memory"
    if code < 0:
        return f"its JVM was ended by {signal.Signals(-code).name}"
    return f"its JVM exited with code {code}"


def answers(session: SparkSession) -> None:
    """Ask the JVM for something; returns once it has answered, and raises if it cannot be reached."""
    jvm: Any = session._jvm
    jvm.java.lang.System.currentTimeMillis()


def end_jvm(process: subprocess.Popen[bytes]) -> None:
    """Kill the JVM, unless it has ended; who waits for an answer of it fails at once."""
    if process.poll() is None:
        # a stopped process takes no other signal
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS)


def forget_gateway(session: SparkSession) -> None:
    """Remove a dead JVM from PySpark, so that the next session starts a new one."""
    context: Any = session.sparkContext
    gateway: Any = context._gateway
    if gateway is None or id(gateway) != id(SparkContext._gateway):
        # another one has taken its place already
        return
    if (server := getattr(context, "_accumulatorServer", None)) is not None:
        with suppress(Exception):
            server.shutdown()
    context._jsc = None
    with suppress(Exception):
        gateway.shutdown()
    with SparkContext._lock:
        if id(gateway) != id(SparkContext._gateway):
            # somebody else was faster, and has started another one while we waited for the lock
            return
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
