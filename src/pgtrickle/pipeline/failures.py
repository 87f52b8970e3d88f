"""What Spark says when a job fails, brought down to its cause."""

from __future__ import annotations

from pyspark.errors import PySparkException

from pgtrickle.model.errors import SparkFailed


def failed(failure: PySparkException) -> SparkFailed:
    """Our error for it: the last line of a worker's traceback, else the first line of the message."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    is_from_worker = any(line.startswith("Traceback") for line in lines)
    cause = lines[-1] if is_from_worker else lines[0] if lines else type(failure).__name__
    return SparkFailed(f"a delta program failed in Spark: {cause}")
