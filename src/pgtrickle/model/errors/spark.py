"""Errors of Java and Spark."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum

from pgtrickle.model.errors.error import PgTrickleError


class SparkCause(Enum):
    """Why a program failed in Spark, if its values caused the failure."""

    MORE_THAN_ONE_ROW = "more than one row"
    VALUE_TOO_LARGE = "value too large"
    OUT_OF_MEMORY = "out of memory"


class JavaMissing(PgTrickleError):
    """Spark needs a Java runtime, and none was found.

    Cause: no Java on the PATH, a wrong JAVA_HOME, or a version that is too old.
    Remedy: install Java 17 or newer, or set JAVA_HOME.
    """

    code, sqlstate, http_status, exit_code = "PGT-J001", "TJ001", 503, 3


class SparkFailed(PgTrickleError):
    """Spark could not be started, or a job failed in it.

    Cause: the message is that of Spark.
    Remedy: check `--spark-master` and `--spark-conf`.
    """

    code, sqlstate, http_status, exit_code = "PGT-J002", "TJ002", 500, 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        cause: SparkCause | None = None,
        condition: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.cause = cause
        """None unless the values caused the failure."""
        self.condition = condition
        """Spark's name for the error."""


class ExecutorCannotConnect(PgTrickleError):
    """A Spark executor cannot connect to PostgreSQL. The stream table is not the cause.

    Cause: the machine of the executor does not reach the server, or has no password for it.
    Remedy: let that machine in (network, `pg_hba.conf`), and give it a password file: `--task-dsn` names it.
    """

    code, sqlstate, http_status, exit_code = "PGT-J004", "TJ004", 503, 3


class SparkLost(PgTrickleError):
    """Spark has died or is restarting. The stream table is not the cause.

    Cause: the JVM was killed, ran out of memory, or the cluster restarted.
    Remedy: none is needed; the sidecar starts Spark again.
    """

    code, sqlstate, http_status, exit_code = "PGT-J003", "TJ003", 503, 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.blamed: frozenset[Hashable] = frozenset()
        """The exceptions: stream tables during whose refreshes Spark has died too often."""
