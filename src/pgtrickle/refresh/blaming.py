"""Whose fault it is when a refresh does not finish: the table's, or the ground's it stands on."""

from __future__ import annotations

from pgtrickle.catalog.dependencies import ground_state
from pgtrickle.model.errors import Busy, ConnectionFailed, PgTrickleError, RefreshFailed, SparkLost
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.prepared_statements import is_in_order, is_outdated_plan
from pgtrickle.postgres.server_timeouts import server_timeout_behind
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session

QUERY_CANCELED = "57014"

ENDLESS = (
    "if statement_timeout is too short for this query, raise it for the role of the sidecar;"
    " a recursion with UNION ALL over a cycle never ends: use UNION or CYCLE, or test the path"
)


CARDINALITY_VIOLATION = "21000"

SEVERAL = "let the subquery give one row for each row around it: aggregate it, or limit it to one"

UNDEFINED = ("42883", "42P01", "42704")
"""A function or operator, a table, a type that does not exist."""

NAME_THE_SCHEMA = (
    "a refresh looks for names without a schema in pg_catalog only: write the schema in the function that"
    " uses the name, or let it say where to look: alter function … set search_path = …"
)

ADVICE = {
    QUERY_CANCELED: ENDLESS,
    CARDINALITY_VIOLATION: SEVERAL,
    **dict.fromkeys(UNDEFINED, NAME_THE_SCHEMA),
}

AGAIN = "try again in a moment"


class Altered(Exception):
    """A source was altered after the query was compiled, or refreshed after it was compared."""


class StateLost(Altered):
    """What is kept beside a stream table was removed by somebody: the rows are to be computed anew."""


_MISSING = frozenset({"42P01", "42883", "3F000"})
"""SQLSTATEs of a table, a function and a schema that are not there."""


def check_ground(engine: Engine, session: Session, table: StreamTable, error: Exception) -> None:
    """Raise where the table is not to blame.

    The connection or Spark was lost, another session was in the way, a plan was kept for too long, something
    that the table relies on was altered, or the refresh has passed its limit and was cancelled.
    """
    engine.limits.check(error)
    if isinstance(error, SparkLost):
        raise error
    if session.is_lost:
        if limit := server_timeout_behind(error):
            raise RefreshFailed(
                f"the refresh of {table.name} was ended by {limit}; nothing of it was kept",
                hint=f"raise {limit} for the role of the sidecar",
            ) from error
        raise ConnectionFailed(
            "the connection was lost during a refresh, of which nothing was kept", hint="refresh again"
        ) from error
    if is_contention(error):
        raise Busy(
            f"{table.name} met another session that locks or alters the same tables", hint=AGAIN
        ) from error
    if isinstance(error, DatabaseError) and error.sqlstate in _MISSING and "pgtrickle_state" in str(error):
        raise StateLost from error
    if is_outdated_plan(error):
        engine.pool.renew()
        raise Altered from error
    if is_in_order(session.newest) and ground_state(session.newest, [table.id]).is_moved:
        raise Altered from error


def explained(table: StreamTable, error: PgTrickleError | DatabaseError) -> PgTrickleError:
    """The error of a refresh in our words, with what to do about it."""
    if isinstance(error, PgTrickleError):
        return error
    message = (error.diag.message_primary or str(error)).strip()
    advice = ADVICE.get(error.sqlstate or "", error.diag.message_hint)
    failure = RefreshFailed(f"the refresh of {table.name} failed: {message}", hint=advice)
    failure.__cause__ = error
    return failure
