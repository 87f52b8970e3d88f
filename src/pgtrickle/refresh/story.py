"""The story of a refresh: claim, snapshot, window, compute, apply, commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pgtrickle.capture.repair import captured_sources, repair, retry_capture, sources_waited_for
from pgtrickle.catalog.outcomes import mark_reinit
from pgtrickle.catalog.repairs import Cause
from pgtrickle.changes.window import buffers
from pgtrickle.model.errors import (
    Diverged,
    PgTrickleError,
    RefreshFailed,
    RefreshTimedOut,
    SparkLost,
    WaitsForTriggers,
)
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RefreshOutcome, Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.pool import FOR_REFRESH
from pgtrickle.refresh.blaming import Altered, StateLost, check_ground
from pgtrickle.refresh.claiming import Overtaken, all_claimed, begun, busy, claimed
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.diverging import note_divergence, self_repairs
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.limits import Limit
from pgtrickle.refresh.preparing import prepared_all
from pgtrickle.refresh.results import Failure, Result, failure_of, has_moved, left_out, name_of
from pgtrickle.refresh.session import alone, together
from pgtrickle.refresh.step import refreshed, require_same_code, require_unaltered
from pgtrickle.refresh.unfollowable import Unfollowable
from pgtrickle.refresh.waves import Member, Together

__all__ = ["Failure", "NotFollowed", "Result", "brought_up_to_date", "refresh", "refresh_all"]


class NotFollowed(Exception):
    """A stream table is not where the snapshot is: it failed, or was left out."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(name_of(result)))
        self.result = result


SPARK_SECONDS = 180.0
"""How long a comparison waits for Spark to start again."""
ATTEMPTS = 3
"""How often a refresh starts over because what it reads was altered, or refreshed, in the meantime."""


def refresh(engine: Engine, table_id: StreamTableId, *, initiated_by: str, waits: bool) -> RefreshOutcome:
    """Bring one stream table up to the newest snapshot."""
    (result,) = refresh_all(engine, (table_id,), initiated_by=initiated_by, waits=waits)
    if isinstance(result, Failure):
        raise result.error
    return result


def refresh_all(
    engine: Engine, ids: Sequence[StreamTableId], *, initiated_by: str, waits: bool
) -> list[Result]:
    """Bring stream tables, given in dependency order, to one snapshot, and commit them at once.

    One that fails leaves the others as they are, except those above it, which then wait. So does one
    that another session has: it is waited for where the caller `waits`, else left out this time. One that
    does not hold the rows it should hold is loaded anew, unless it is to stop.
    """
    results = _refreshed_once(engine, ids, initiated_by, waits)
    diverged = self_repairs(results)
    if not diverged:
        return results
    with engine.connection() as connection:
        for failure in diverged:
            assert isinstance(failure.error, Diverged)
            note_divergence(connection, failure.table, failure.error, Cause.DIVERGED, initiated_by)
        connection.commit()
    repaired = {name_of(result): result for result in _refreshed_once(engine, ids, initiated_by, waits)}
    return [result if has_moved(result) else repaired.get(name_of(result), result) for result in results]


def _refreshed_once(
    engine: Engine, ids: Sequence[StreamTableId], initiated_by: str, waits: bool
) -> list[Result]:
    try:
        with engine.limits.within() as limit:
            return _within_limit(engine, limit, ids, initiated_by, waits)
    except RefreshTimedOut as error:
        if len(limit.tables) == 1:
            return [Failure(limit.tables[0], error)]
        raise


def _within_limit(
    engine: Engine, limit: Limit, ids: Sequence[StreamTableId], initiated_by: str, waits: bool
) -> list[Result]:
    restless: PgTrickleError = _restless()
    for _ in range(ATTEMPTS):
        tables: list[Member] = []
        try:
            tables, failures = prepared_all(engine, ids)
            limit.doing = "reading what has changed"
            if len(tables) == 1 and not failures and _can_go_alone(tables[0][1]):
                return [_alone(engine, *tables[0], initiated_by, waits)]
            return [*failures, *_together(engine, tables, initiated_by, waits, failures)]
        except StateLost:
            _restore_state(engine, ids)
        except Altered:
            engine.forget(*ids)
            _repair_captures(engine, ids)
        except Overtaken:
            restless = busy(*(table for table, _ in tables))
        except WaitsForTriggers as waiting:
            restless = waiting
            if not _has_captured(engine, ids):
                break
    raise restless


def _repair_captures(engine: Engine, ids: Sequence[StreamTableId]) -> None:
    """Make again what somebody has removed of the capture of their sources."""
    with engine.connection() as connection:
        for source in captured_sources(connection, ids):
            with suppress(PgTrickleError):
                repair(connection, source)


def _restore_state(engine: Engine, ids: Sequence[StreamTableId]) -> None:
    """Have the rows of stream tables computed anew, with all that is kept beside them."""
    with engine.connection() as connection:
        connection.execute("select pgtrickle_internal.create_state()")
        for table in ids:
            mark_reinit(connection, table, "what pgtrickle keeps beside it was removed")
        connection.commit()


def _has_captured(engine: Engine, ids: Sequence[StreamTableId]) -> bool:
    """Try to create the triggers that stream tables wait for; whether they have all of them now."""
    with engine.connection() as connection:
        return not any(retry_capture(connection, source) for source in sources_waited_for(connection, ids))


@contextmanager
def brought_up_to_date(
    engine: Engine, ids: Sequence[StreamTableId], wanted: RelationName
) -> Iterator[Connection]:
    """A transaction in which stream tables, given in dependency order, have followed all it sees.

    It commits when the caller is done with it, and keeps nothing if the caller raises. Raises `NotFollowed`
    where the `wanted` one could not follow.
    """
    for _ in range(ATTEMPTS):
        tables, failures = prepared_all(engine, ids)
        if any(found.compiled is not None for _, found in tables):
            # where Spark has died, the next one is waited for without a transaction
            engine.supply.settle(SPARK_SECONDS)
        with engine.pool.connections(FOR_REFRESH) as (connection, newest):
            try:
                results = [
                    *failures,
                    *_followed(engine, connection, newest, tables, "verify", True, failures),
                ]
            except SparkLost:
                continue
            except (Altered, Overtaken):
                engine.forget(*ids)
                continue
            _require_moved(wanted, results)
            yield connection
            connection.commit()
            return
    raise _restless()


def _require_moved(wanted: RelationName, results: Sequence[Result]) -> None:
    """Raise where a table has not moved, with the failure that kept it from it if there was one."""
    kept_back = [result for result in results if name_of(result) == wanted and not has_moved(result)]
    if kept_back:
        failures = [result for result in results if isinstance(result, Failure)]
        raise NotFollowed((failures or kept_back)[0])


def _restless() -> RefreshFailed:
    return RefreshFailed("the sources are being altered again and again", hint="try again later")


def _can_go_alone(found: Compilation) -> bool:
    """Whether Spark's tasks can share what it reads: only tables that others write, in one snapshot."""
    return found.compiled is not None and not found.upstream and not found.compiled.asks_on_apply


def _alone(engine: Engine, table: StreamTable, found: Compilation, initiated_by: str, waits: bool) -> Result:
    with engine.pool.connections(FOR_REFRESH) as (write, read):
        held = claimed(engine, write, table, waits)
        session = begun(lambda: alone(write, read, [source.table for source in found.sources]))
        if held.status is Status.SUSPENDED:
            return left_out(held.name, "it is suspended")
        try:
            outcome = refreshed(engine, session, held, found, initiated_by)
        except Unfollowable as value:
            reason = str(value)
        except (PgTrickleError, DatabaseError) as error:
            check_ground(engine, session, held, error)
            return failure_of(held, error)
        else:
            write.commit()
            # nothing was written here; a rollback would forget what is prepared
            read.commit()
            return outcome
    (result,) = _together(engine, [(table, found.only_full(reason))], initiated_by, waits)
    return result


def _together(
    engine: Engine,
    tables: Sequence[Member],
    initiated_by: str,
    waits: bool,
    failures: Sequence[Failure] = (),
) -> list[Result]:
    with engine.pool.connections(FOR_REFRESH) as (connection, newest):
        results = _followed(engine, connection, newest, tables, initiated_by, waits, failures)
        connection.commit()
        return results


def _followed(
    engine: Engine,
    connection: Connection,
    newest: Connection,
    tables: Sequence[Member],
    initiated_by: str,
    waits: bool,
    failures: Sequence[Failure],
) -> list[Result]:
    """All tables in one snapshot on one connection; the caller commits. `newest` sees later commits."""
    if not tables:
        return []
    sources = {source for _, found in tables for source in found.sources}
    # a buffer must not be emptied between our snapshot and our claim
    kept = {buffer for source in sources for buffer in buffers(source.relation)}
    relations = {source.table for source in sources} | kept | {table.name for table, _ in tables}
    session = begun(lambda: together(connection, newest, sorted(relations)))
    held = all_claimed(engine, connection, [table for table, _ in tables], waits)
    if not held:
        raise busy(*(table for table, _ in tables))
    members = [(held[table.id], found) for table, found in tables if table.id in held]
    missing = [table for table, _ in tables if table.id not in held]
    ground = require_unaltered(session, members)
    waiting = {failure.table.name: "failed" for failure in failures}
    waiting |= {table.name: "is being refreshed by another session" for table in missing}
    results = Together(engine, session, initiated_by, waiting).followed(members)
    require_same_code(session, [table for table, _ in members], ground)
    return [*results, *(left_out(table.name, "another session is refreshing it") for table in missing)]
