"""Everything that reaches through the Py4J gateway into Spark's JVM, and nothing else does.

Three things need it: the life and death of the JVM's process (`process.py`), errors that come from the JVM
(`failures.py`), and computing small programs in the driver without a job (`driver_execution.py`,
`cached_plan.py`). The last one uses parts of Spark that are not its public API. So it is tried once when a
session opens; where the trial fails, every program runs as an ordinary job, and `Programs.why_jobs` says why.
docs/SPARK_INTERNALS.md lists what is used and with which versions it was tried.
"""

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

GatewayError = Py4JError
"""A call into the JVM failed, or the JVM could not be reached."""
