"""Every error a user can see: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class PgTrickleError(Exception):
    """The root of all errors that pgtrickle raises on purpose."""

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
    """The server cannot be reached, or refuses us."""

    code, sqlstate, http_status, exit_code = "PGT-C001", "08001", 503, 3


class UnsupportedServer(PgTrickleError):
    """The server is of a version we do not know."""

    code, sqlstate, http_status, exit_code = "PGT-C002", "0A000", 503, 3


class ReadOnlyServer(PgTrickleError):
    """The server is a standby, or the database refuses writes."""

    code, sqlstate, http_status, exit_code = "PGT-C003", "25006", 503, 3


class UnsuitableSetting(PgTrickleError):
    """A setting that we may not change makes our work impossible or wrong."""

    code, sqlstate, http_status, exit_code = "PGT-C007", "55000", 503, 3


class NotInstalled(PgTrickleError):
    """The schemas of pgtrickle are missing, or of another version."""

    code, sqlstate, http_status, exit_code = "PGT-C004", "3F000", 409, 3


class CommandRefused(PgTrickleError):
    """PostgreSQL refused what the user asked for: bad query, name, schedule or privilege."""

    code, sqlstate, http_status, exit_code = "PGT-S001", "42000", 422, 2

    def __init__(self, message: str, *, hint: str | None = None, refused_with: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.refused_with = refused_with


class UnknownStreamTable(PgTrickleError):
    """There is no stream table of that name."""

    code, sqlstate, http_status, exit_code = "PGT-S002", "42P01", 404, 2


class BadSchedule(PgTrickleError):
    """The text is no schedule."""

    code, sqlstate, http_status, exit_code = "PGT-S003", "22023", 422, 2


class Busy(PgTrickleError):
    """Another session holds what we need; nothing is wrong, only later."""

    code, sqlstate, http_status, exit_code = "PGT-S004", "55P03", 409, 4


class SourceGated(Busy):
    """Somebody loads a source and has asked that its dependants wait."""

    code, sqlstate, http_status, exit_code = "PGT-S006", "55000", 409, 4


class Drained(Busy):
    """No refresh starts in this database until somebody lets them."""

    code, sqlstate, http_status, exit_code = "PGT-S007", "55000", 409, 4


class WaitsForTriggers(Busy):
    """A source was too busy for triggers so far; the sidecar goes on trying to create them."""

    code, sqlstate, http_status, exit_code = "PGT-S009", "55P03", 409, 4


class BadStatement(PgTrickleError):
    """A statement about stream tables cannot be read."""

    code, sqlstate, http_status, exit_code = "PGT-S008", "42601", 422, 2


class NoConnectionFree(Busy):
    """All connections that we may have are in use, and none became free in time."""

    code, sqlstate, http_status, exit_code = "PGT-C005", "53300", 503, 4


class TooFewConnections(PgTrickleError):
    """With so few connections no refresh could finish."""

    code, sqlstate, http_status, exit_code = "PGT-C006", "22023", 422, 2


class CopiedDatabase(PgTrickleError):
    """The catalog came with a dump, a clone or an upgrade, and what it says belongs to another database."""

    code, sqlstate, http_status, exit_code = "PGT-C007", "55000", 409, 3


class CyclicStreamTables(PgTrickleError):
    """Stream tables read one another in a circle, so none can be refreshed first."""

    code, sqlstate, http_status, exit_code = "PGT-S005", "42P19", 422, 2


class PlanError(PgTrickleError):
    """A query cannot be planned."""

    code, sqlstate, http_status, exit_code = "PGT-P001", "42601", 422, 2


class UnsupportedQuery(PlanError):
    """The query has a part that deltas cannot follow."""

    code, sqlstate, http_status, exit_code = "PGT-P002", "0A000", 422, 2


class SourceChanged(PgTrickleError):
    """A source was dropped, or its definition no longer fits the query."""

    code, sqlstate, http_status, exit_code = "PGT-R001", "42P01", 409, 1


class Diverged(PgTrickleError):
    """A stream table does not hold the rows it should hold. `rows` says which ones differ, a few of them."""

    code, sqlstate, http_status, exit_code = "PGT-R002", "XX001", 409, 5

    def __init__(self, message: str, *, hint: str | None = None, rows: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.rows = tuple(rows)


class RefreshFailed(PgTrickleError):
    """A refresh did not finish; nothing of it was kept."""

    code, sqlstate, http_status, exit_code = "PGT-R003", "XX000", 500, 1


class Abandoned(PgTrickleError):
    """The process is stopping and has given up what was not done; nothing of it was kept."""

    code, sqlstate, http_status, exit_code = "PGT-R004", "57P01", 503, 0


class RightLost(PgTrickleError):
    """The owner of a stream table may no longer read what its query reads."""

    code, sqlstate, http_status, exit_code = "PGT-A001", "42501", 403, 1


class RefreshTimedOut(PgTrickleError):
    """A refresh has passed its refresh_timeout and was cancelled; nothing of it was kept."""

    code, sqlstate, http_status, exit_code = "PGT-R007", "57014", 504, 1


class VerifyTimedOut(PgTrickleError):
    """A comparison has passed its limit and was cancelled; whether the rows are right is not known."""

    code, sqlstate, http_status, exit_code = "PGT-R008", "57014", 504, 1


class JavaMissing(PgTrickleError):
    """Spark needs a Java runtime, and there is none."""

    code, sqlstate, http_status, exit_code = "PGT-J001", "58000", 503, 3


class SparkFailed(PgTrickleError):
    """Spark could not be started, or a job of ours failed in it."""

    code, sqlstate, http_status, exit_code = "PGT-J002", "58000", 500, 1


class SparkLost(PgTrickleError):
    """Spark has ended, or is being started again; nothing is wrong with a stream table.

    Except for those `blamed`, by their ids: Spark has died too often while they computed.
    """

    code, sqlstate, http_status, exit_code = "PGT-J003", "57P03", 503, 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.blamed: frozenset[int] = frozenset()
