"""What Spark says when a job fails, brought down to its cause."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from pgtrickle.model.errors import SparkFailed

JOB_FAILED: Final = (PySparkException, Py4JJavaError)
"""How PySpark raises what failed in a job: most of it in words of its own, a cancellation as it comes."""
_WORKER_LOST: Final = (
    "ExecutorLostFailure",
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
    "Could not find CoarseGrainedScheduler",
    "Remote RPC client disassociated",
    "INVALID_HANDLE.SESSION",
    "StatusCode.UNAVAILABLE",
)
"""What a failure says where a process of Spark's has ended, or a machine, and not a program of ours."""


def failed(failure: Exception) -> SparkFailed:
    """Our error for it: the last line of a worker's traceback, else the first line of the message."""
    lines = [line.strip() for line in text_of(failure).splitlines() if line.strip()]
    is_from_worker = any(line.startswith("Traceback") for line in lines)
    cause = lines[-1] if is_from_worker else lines[0] if lines else type(failure).__name__
    return SparkFailed(f"a delta program failed in Spark: {cause}")


def text_of(failure: BaseException) -> str:
    """What an error says; an error of Spark's asks the JVM for it, which may be gone."""
    try:
        return str(failure)
    except Exception:
        return type(failure).__name__


def is_worker_lost(failure: BaseException) -> bool:
    """Whether a process that Spark needs has ended during a job."""
    return _says(failure, _WORKER_LOST)


def is_unreachable(failure: BaseException) -> bool:
    """Whether the JVM behind PySpark did not answer: its gateway is gone."""
    found: BaseException | None = failure
    while found is not None:
        if isinstance(found, (Py4JNetworkError, ConnectionError, EOFError)):
            return True
        found = found.__cause__ or found.__context__
    return False


def _says(failure: BaseException, signs: tuple[str, ...]) -> bool:
    text = text_of(failure)
    return any(sign in text for sign in signs)
