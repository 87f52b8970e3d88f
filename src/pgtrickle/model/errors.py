"""All errors that users can see. Each says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar


class PgTrickleError(Exception):
    """The base class of all errors that pgtrickle raises."""

    code: ClassVar[str] = "PGT-X000"
    sqlstate: ClassVar[str] = "XX000"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class ConnectionFailed(PgTrickleError):
    """The server cannot be reached or refuses the connection."""

    code, sqlstate, http_status, exit_code = "PGT-C001", "08001", 503, 3


class UnsupportedServer(PgTrickleError):
    """The version of the server is not supported."""

    code, sqlstate, http_status, exit_code = "PGT-C002", "0A000", 503, 3


class ReadOnlyServer(PgTrickleError):
    """The server is a standby or does not accept writes."""

    code, sqlstate, http_status, exit_code = "PGT-C003", "25006", 503, 3


class UnsuitableSetting(PgTrickleError):
    """A setting that pgtrickle cannot change makes its work impossible or wrong."""

    code, sqlstate, http_status, exit_code = "PGT-C007", "55000", 503, 3


class NotInstalled(PgTrickleError):
    """The schemas of pgtrickle are missing or have another version."""

    code, sqlstate, http_status, exit_code = "PGT-C004", "3F000", 409, 3


class CommandRefused(PgTrickleError):
    """A command was refused because of its query, name, schedule or privileges."""

    code, sqlstate, http_status, exit_code = "PGT-S001", "42000", 422, 2

    def __init__(self, message: str, *, hint: str | None = None, refused_with: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.refused_with = refused_with


class UnknownStreamTable(PgTrickleError):
    """There is no stream table of that name."""

    code, sqlstate, http_status, exit_code = "PGT-S002", "42P01", 404, 2


class BadSchedule(PgTrickleError):
    """The text is not a valid schedule."""

    code, sqlstate, http_status, exit_code = "PGT-S003", "22023", 422, 2


class Busy(PgTrickleError):
    """Another session holds a lock that is needed. Trying again later helps."""

    code, sqlstate, http_status, exit_code = "PGT-S004", "55P03", 409, 4


class SourceGated(Busy):
    """A source is gated, so stream tables that depend on it wait."""

    code, sqlstate, http_status, exit_code = "PGT-S006", "55000", 409, 4


class Drained(Busy):
    """The database is drained: no refresh starts until it is undrained."""

    code, sqlstate, http_status, exit_code = "PGT-S007", "55000", 409, 4


class WaitsForTriggers(Busy):
    """A source has been locked whenever the sidecar tried to create triggers; it keeps trying."""

    code, sqlstate, http_status, exit_code = "PGT-S009", "55P03", 409, 4


class BadStatement(PgTrickleError):
    """A statement about stream tables cannot be parsed."""

    code, sqlstate, http_status, exit_code = "PGT-S008", "42601", 422, 2


class NoConnectionFree(Busy):
    """All allowed connections are in use, and none became free in time."""

    code, sqlstate, http_status, exit_code = "PGT-C005", "53300", 503, 4


class TooFewConnections(PgTrickleError):
    """The connection limit is too low for a refresh to finish."""

    code, sqlstate, http_status, exit_code = "PGT-C006", "22023", 422, 2


class CopiedDatabase(PgTrickleError):
    """The catalog comes from a dump, a clone or an upgrade, and describes another database."""

    code, sqlstate, http_status, exit_code = "PGT-C007", "55000", 409, 3


class CyclicStreamTables(PgTrickleError):
    """Stream tables depend on each other in a cycle, so none can be refreshed first."""

    code, sqlstate, http_status, exit_code = "PGT-S005", "42P19", 422, 2


class PlanError(PgTrickleError):
    """A query cannot be planned."""

    code, sqlstate, http_status, exit_code = "PGT-P001", "42601", 422, 2


class UnsupportedQuery(PlanError):
    """The query has a part that cannot be maintained incrementally."""

    code, sqlstate, http_status, exit_code = "PGT-P002", "0A000", 422, 2


class SourceChanged(PgTrickleError):
    """A source was dropped, or its definition no longer matches the query."""

    code, sqlstate, http_status, exit_code = "PGT-R001", "42P01", 409, 1


class Diverged(PgTrickleError):
    """A stream table does not hold the correct rows. `rows` shows some of those that differ."""

    code, sqlstate, http_status, exit_code = "PGT-R002", "XX001", 409, 5

    def __init__(self, message: str, *, hint: str | None = None, rows: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.rows = tuple(rows)


class RefreshFailed(PgTrickleError):
    """A refresh failed and was rolled back."""

    code, sqlstate, http_status, exit_code = "PGT-R003", "XX000", 500, 1


class Abandoned(PgTrickleError):
    """The process is stopping and has rolled back its unfinished work."""

    code, sqlstate, http_status, exit_code = "PGT-R004", "57P01", 503, 0


class RightLost(PgTrickleError):
    """The owner of a stream table can no longer read a source of its query."""

    code, sqlstate, http_status, exit_code = "PGT-A001", "42501", 403, 1


class RefreshTimedOut(PgTrickleError):
    """A refresh exceeded its refresh_timeout and was cancelled and rolled back."""

    code, sqlstate, http_status, exit_code = "PGT-R007", "57014", 504, 1


class VerifyTimedOut(PgTrickleError):
    """A comparison exceeded its limit and was cancelled. It is unknown whether the rows are correct."""

    code, sqlstate, http_status, exit_code = "PGT-R008", "57014", 504, 1


class JavaMissing(PgTrickleError):
    """Spark needs a Java runtime, and none was found."""

    code, sqlstate, http_status, exit_code = "PGT-J001", "58000", 503, 3


class SparkCause(Enum):
    """Why a program failed in Spark, if its values caused the failure."""

    MORE_THAN_ONE_ROW = "more than one row"
    VALUE_TOO_LARGE = "value too large"
    OUT_OF_MEMORY = "out of memory"


class SparkFailed(PgTrickleError):
    """Spark could not be started, or a job failed in it.

    `cause` is None unless the values caused the failure. `condition` is Spark's name for the error.
    """

    code, sqlstate, http_status, exit_code = "PGT-J002", "58000", 500, 1

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
        self.condition = condition


class SparkLost(PgTrickleError):
    """Spark has died or is restarting. The stream table is not the cause.

    `blamed` holds the ids of the exceptions: stream tables during whose refreshes Spark has died too often.
    """

    code, sqlstate, http_status, exit_code = "PGT-J003", "57P03", 503, 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.blamed: frozenset[int] = frozenset()
