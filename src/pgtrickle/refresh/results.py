"""What comes of refreshing a stream table: an outcome, or the error that a person reads."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.model.errors import PgTrickleError, RefreshFailed, SparkFailed
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW
from pgtrickle.postgres.connection import DatabaseError

QUERY_CANCELED = "57014"

ENDLESS = (
    "if statement_timeout is too short for this query, raise it for the role of the sidecar;"
    " a recursion with UNION ALL over a cycle never ends: use UNION or CYCLE, or test the path"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A refresh that left everything as it was."""

    table: StreamTable
    error: PgTrickleError


Result = RefreshOutcome | Failure


def left_out(table: RelationName, reason: str) -> RefreshOutcome:
    """It was not refreshed this time, and nothing is wrong with it."""
    return RefreshOutcome(table, Action.SKIP, 0, 0, 0.0, reason)


def failure_of(table: StreamTable, error: PgTrickleError | DatabaseError) -> Failure:
    """The failure of a table, explained."""
    return Failure(table, _explained(table, error))


def _explained(table: StreamTable, error: PgTrickleError | DatabaseError) -> PgTrickleError:
    if isinstance(error, SparkFailed) and MORE_THAN_ONE_ROW in error.message:
        hint = "let the subquery give one row for each row around it: aggregate it, or limit it to one"
        return RefreshFailed(f"the refresh of {table.name} failed: {MORE_THAN_ONE_ROW}", hint=hint)
    if isinstance(error, PgTrickleError):
        return error
    message = (error.diag.message_primary or str(error)).strip()
    advice = ENDLESS if error.sqlstate == QUERY_CANCELED else error.diag.message_hint
    failure = RefreshFailed(f"the refresh of {table.name} failed: {message}", hint=advice)
    failure.__cause__ = error
    return failure
