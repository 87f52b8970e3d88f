"""Errors of refreshes."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.model.errors.error import PgTrickleError


class SourceChanged(PgTrickleError):
    """A source was dropped, or its definition no longer matches the query.

    Cause: DDL on something that the stream table reads.
    Remedy: undo the change, alter the query, or drop the stream table.
    """

    code, sqlstate, http_status, exit_code = "PGT-R001", "TR001", 409, 1


class Diverged(PgTrickleError):
    """A stream table does not hold the correct rows. `rows` shows some of those that differ.

    Cause: its rows were changed past the guard, or a defect in pgtrickle.
    Remedy: it repairs itself unless `on_divergence` is `stop`; then run `pgtrickle repair NAME`.
    """

    code, sqlstate, http_status, exit_code = "PGT-R002", "TR002", 409, 5

    def __init__(self, message: str, *, hint: str | None = None, rows: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.rows = tuple(rows)


class RefreshFailed(PgTrickleError):
    """A refresh failed and was rolled back.

    Cause: PostgreSQL or Spark reported the error in the message.
    Remedy: remove the cause. The sidecar tries again, and suspends the stream table after several failures.
    """

    code, sqlstate, http_status, exit_code = "PGT-R003", "38000", 500, 1


class Abandoned(PgTrickleError):
    """The process is stopping and has rolled back its unfinished work.

    Cause: SIGTERM or Ctrl-C, and a refresh that did not finish within `--stop-timeout`.
    Remedy: none is needed; the next sidecar continues.
    """

    code, sqlstate, http_status, exit_code = "PGT-R004", "TR004", 503, 0


class RefreshTimedOut(PgTrickleError):
    """A refresh exceeded its refresh_timeout and was canceled and rolled back.

    Cause: a query that takes long, a lock, or an endless recursion.
    Remedy: make the query faster, or raise `refresh_timeout`.
    """

    code, sqlstate, http_status, exit_code = "PGT-R007", "TR007", 504, 1


class PreviewTimedOut(PgTrickleError):
    """A preview exceeded its limit and was canceled.

    Cause: the refresh that it tries out takes longer than the limit.
    Remedy: allow more with `pgtrickle preview --timeout`; meanwhile, the stream table is not refreshed.
    """

    code, sqlstate, http_status, exit_code = "PGT-R009", "TR009", 504, 1


class VerifyTimedOut(PgTrickleError):
    """A comparison exceeded its limit and was canceled. It is unknown whether the rows are correct.

    Cause: evaluating the query in PostgreSQL takes longer than the limit.
    Remedy: allow more with `pgtrickle verify --timeout`.
    """

    code, sqlstate, http_status, exit_code = "PGT-R008", "TR008", 504, 1
