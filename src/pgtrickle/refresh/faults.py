"""Why a refresh did not finish: the table itself, a value, or something the table relies on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

import pyarrow as pa

from pgtrickle.catalog.dependencies import GroundState, ground_state
from pgtrickle.model.errors import (
    Busy,
    ConnectionFailed,
    PgTrickleError,
    RefreshFailed,
    SparkCause,
    SparkFailed,
    SparkLost,
)
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW
from pgtrickle.postgres.connection import DatabaseError, DataError
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.prepared_statements import is_in_order, is_outdated_plan
from pgtrickle.postgres.server_timeouts import server_timeout_behind
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.source_copies import is_behind

QUERY_CANCELED = "57014"

ENDLESS = (
    "if statement_timeout is too short for this query, raise it for the role of the sidecar;"
    " a recursion with UNION ALL over a cycle never ends: use UNION or CYCLE, or test the path"
)


CARDINALITY_VIOLATION = "21000"

SEVERAL = "let the subquery give one row for each row around it: aggregate it, or limit it to one"

UNDEFINED = ("42883", "42P01", "42704")
"""A function or operator, a table, or a type does not exist."""

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

REPLICA_IDENTITY_CHECK = "CheckCmdReplicaIdentity"
"""The function of PostgreSQL that refuses to update or delete rows of a published table."""
NO_IDENTITY = "55000"
"""The table has no replica identity. Any other refusal is about a column list or a row filter."""


class Altered(Exception):
    """A source was altered after the query was compiled, or refreshed after it was compared."""


class StateLost(Altered):
    """Somebody removed the state of a stream table, so its rows have to be computed again."""


class Unfollowable(Exception):
    """A value that only PostgreSQL can compute with, such as a NaN among decimals.

    The reason does not quote the value: every role can listen to alerts, which contain reasons, and the owner
    of the stream table may not be allowed to see the row.
    """


Blamed = Unfollowable | PgTrickleError | DatabaseError
"""A failure of one table, which leaves the others of its wave as they are."""
BLAMED = (Unfollowable, PgTrickleError, DatabaseError)

_MISSING = frozenset({"42P01", "42883", "3F000"})
"""A table, a function or a schema does not exist."""


def require_unaltered(session: Session, tables: Sequence[CompiledTable]) -> GroundState:
    """Raise if a query may no longer fit what it relies on, as the session sees it."""
    copied = {source for member in tables for source in member.compilation.copied_sources}
    ground = ground_state(session.read, [member.table.id for member in tables])
    if ground.is_moved or is_behind(session.read, copied):
        raise Altered
    return ground


def require_same_code(session: Session, tables: Sequence[CompiledTable], ground: GroundState) -> None:
    """Raise if functions, types or inheritance, which ignore snapshots, changed after ours was taken."""
    if ground_state(session.newest, [member.table.id for member in tables]).code != ground.code:
        raise Altered


def check_ground(engine: Engine, session: Session, table: StreamTable, error: Exception) -> None:
    """Raise if the error is not the fault of the table.

    The connection or Spark was lost, another session held a lock, a prepared statement is out of date,
    something that the table relies on was altered, or the refresh was canceled at its time limit.
    """
    engine.timeouts.check(error)
    if isinstance(error, SparkLost):
        raise error
    if session.is_lost:
        if limit := server_timeout_behind(error):
            raise RefreshFailed(
                f"the refresh of {table.name} was ended by {limit} and rolled back",
                hint=f"raise {limit} for the role of the sidecar",
            ) from error
        raise ConnectionFailed(
            "the connection was lost during a refresh, which was rolled back", hint="refresh again"
        ) from error
    if is_contention(error):
        raise Busy(
            f"another session locks or alters tables that the refresh of {table.name} needs", hint=AGAIN
        ) from error
    if isinstance(error, DatabaseError) and error.sqlstate in _MISSING and _names_state(error):
        raise StateLost from error
    if is_outdated_plan(error):
        engine.pool.renew()
        raise Altered from error
    if is_in_order(session.newest) and ground_state(session.newest, [table.id]).is_moved:
        raise Altered from error


def _names_state(error: DatabaseError) -> bool:
    """Whether the missing object is one of the state; the statement around it always names some."""
    return "pgtrickle_state" in (error.diag.message_primary or "")


def explained_error(table: StreamTable, error: PgTrickleError | DatabaseError) -> PgTrickleError:
    """The error of a refresh with its table, and a hint what to do about it."""
    if isinstance(error, PgTrickleError):
        return error
    message = (error.diag.message_primary or str(error)).strip()
    advice = ADVICE.get(error.sqlstate or "", error.diag.message_hint)
    if error.diag.source_function == REPLICA_IDENTITY_CHECK:
        advice = _replica_identity_advice(table, error)
    # PostgreSQL's detail may quote rows, and every role can listen to the alert about this error
    failure = RefreshFailed(f"the refresh of {table.name} failed: {message}", hint=advice)
    failure.__cause__ = error
    return failure


def _replica_identity_advice(table: StreamTable, error: DatabaseError) -> str:
    """What the owner has to do so that rows of a published stream table can be updated and deleted."""
    if f'"{table.name.name}"' not in (error.diag.message_primary or ""):
        return "a publication includes all tables; the sidecar prepares its own for that and tries again"
    if error.sqlstate == NO_IDENTITY:
        return (
            f"a publication includes it; its owner has to run: alter table {table.name} replica identity full"
        )
    return (
        f"{table.name} is published with a column list or a row filter that lacks columns of its replica"
        " identity: add them, or let a publication have all columns and rows"
    )


@contextmanager
def unfollowable_values() -> Iterator[None]:
    """Turn errors about values into `Unfollowable`; a retry may cure all others."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise Unfollowable("a value cannot be carried to Spark") from error
    except DataError as error:
        # the failing row may be one that a join drops before PostgreSQL would evaluate the expression
        raise Unfollowable(f"a value fails while it is read ({type(error).__name__})") from error
    except SparkFailed as error:
        match error.cause:
            case SparkCause.MORE_THAN_ONE_ROW:
                # PostgreSQL evaluates a subquery only for rows that conditions, joins and limits keep
                raise Unfollowable(MORE_THAN_ONE_ROW) from error
            case SparkCause.VALUE_TOO_LARGE:
                raise Unfollowable(f"a value is too large for Spark ({error.condition})") from error
            case SparkCause.OUT_OF_MEMORY:
                raise Unfollowable("Spark had too little memory for it") from error
            case None:
                raise
            case _:
                assert_never(error.cause)
