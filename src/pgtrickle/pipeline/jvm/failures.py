"""Errors of failed Spark jobs: their cause as text, and what kind of failure they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from py4j.protocol import Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from pgtrickle.model.errors import ExecutorCannotConnect, SparkCause, SparkFailed
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW

JOB_FAILED: Final = (PySparkException, Py4JJavaError)
"""The exceptions PySpark raises when a job fails. A canceled job raises Py4J's own."""
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
"""Texts in an error that mean a Spark process or machine was lost, not that the program was wrong."""

_SESSION_LOST: Final = (
    "INVALID_HANDLE",
    "NO_ACTIVE_SESSION",
    "incorrect server side session identifier",
    "StatusCode.UNAVAILABLE",
    "RETRIES_EXCEEDED",
)
"""Texts in an error of Spark Connect that mean its session cannot be used any more."""
_CANNOT_CONNECT: Final = re.compile(
    rf"^.*\b{ExecutorCannotConnect.__name__}: {ExecutorCannotConnect.code}: "
    r"(?P<message>.*) \((?P<hint>[^()]*)\)\s*$",
    re.MULTILINE,
)
"""The last line of the traceback of a task."""

_CAUSES: Final[Mapping[str, SparkCause]] = {
    MORE_THAN_ONE_ROW: SparkCause.MORE_THAN_ONE_ROW,
    "ARITHMETIC_OVERFLOW": SparkCause.VALUE_TOO_LARGE,
    "NUMERIC_VALUE_OUT_OF_RANGE": SparkCause.VALUE_TOO_LARGE,
    "ArrowInvalid": SparkCause.VALUE_TOO_LARGE,
    "DataError": SparkCause.VALUE_TOO_LARGE,
    "DataException": SparkCause.VALUE_TOO_LARGE,
    "OutOfMemoryError": SparkCause.OUT_OF_MEMORY,
    "OutOfMemoryException": SparkCause.OUT_OF_MEMORY,
    "UNABLE_TO_ACQUIRE_MEMORY": SparkCause.OUT_OF_MEMORY,
}
"""The conditions of Spark, and the exceptions of its JVM and its workers, that come from values."""


def spark_failure(failure: Exception) -> SparkFailed:
    """Our error for a failed job, with the last line of a worker's traceback or the first of the message."""
    lines = [line.strip() for line in text_of(failure).splitlines() if line.strip()]
    is_from_worker = any(line.startswith("Traceback") for line in lines)
    cause = lines[-1] if is_from_worker else lines[0] if lines else type(failure).__name__
    condition = _condition(failure, cause)
    return SparkFailed(
        f"a delta program failed in Spark: {cause}",
        cause=_CAUSES[condition] if condition else None,
        condition=condition,
    )


def _condition(failure: Exception, cause: str) -> str | None:
    """The condition that Spark names; of an error in a task or a worker only the text has the name."""
    try:
        named = failure.getCondition() if isinstance(failure, PySparkException) else None
    except Exception:
        # the JVM that would tell may be gone
        named = None
    known = (named or "").partition(".")[0]
    return known if known in _CAUSES else next((name for name in _CAUSES if name in cause), None)


def executor_failure(failure: BaseException) -> ExecutorCannotConnect | None:
    """The error of a task that could not connect; None if the failure is another one."""
    found = _CANNOT_CONNECT.search(text_of(failure))
    return ExecutorCannotConnect(found["message"], hint=found["hint"]) if found else None


def text_of(failure: BaseException) -> str:
    """The text of an error. A Spark error asks the JVM for its text, and the JVM may be gone."""
    try:
        return str(failure)
    except Exception:
        return type(failure).__name__


def first_line(failure: BaseException) -> str:
    """The first line of an error's text."""
    return next(iter(text_of(failure).strip().splitlines()), type(failure).__name__)


def is_worker_lost(failure: BaseException) -> bool:
    """Whether a process that Spark needs ended during a job."""
    return _says(failure, _WORKER_LOST)


def is_session_lost(failure: BaseException) -> bool:
    """Whether a Spark Connect server is gone, or does not know the session any more."""
    return _says(failure, _SESSION_LOST)


def is_unreachable(failure: BaseException) -> bool:
    """Whether the JVM did not answer because its gateway is gone."""
    found: BaseException | None = failure
    while found is not None:
        if isinstance(found, (Py4JNetworkError, ConnectionError, EOFError)):
            return True
        found = found.__cause__ or found.__context__
    return False


def _says(failure: BaseException, signs: tuple[str, ...]) -> bool:
    text = text_of(failure)
    return any(sign in text for sign in signs)
