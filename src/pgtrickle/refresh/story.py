"""The story of a refresh: prepare, claim, snapshot, window, decide, compute, apply, commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from pgtrickle.capture.repair import captured_sources, repair, retry_capture, sources_waited_for
from pgtrickle.catalog.outcomes import mark_reinit
from pgtrickle.catalog.repairs import Cause
from pgtrickle.model.errors import (
    Diverged,
    PgTrickleError,
    RefreshFailed,
    RefreshTimedOut,
    SparkLost,
    WaitsForTriggers,
)
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RefreshOutcome, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.locking import BRIEF_LOCKS
from pgtrickle.postgres.pool import FOR_REFRESH
from pgtrickle.refresh.claim import (
    Claim,
    Overtaken,
    RefreshRequest,
    busy_error,
    can_go_alone,
    claim_alone,
    claim_together,
)
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.decide.sizes import loads_in_postgres
from pgtrickle.refresh.divergence import note_divergence, repairable_failures
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute.plan_ahead import plan_ahead
from pgtrickle.refresh.faults import Altered, StateLost, Unfollowable, check_ground
from pgtrickle.refresh.outcome import Failure, Result, failure_of, has_moved, name_of, note_results
from pgtrickle.refresh.prepare import prepare_all
from pgtrickle.refresh.timeouts import Timeout
from pgtrickle.refresh.waves import StartOver, refresh_waves

__all__ = ["Failure", "NotFollowed", "Result", "bring_up_to_date", "refresh", "refresh_all"]

SPARK_SECONDS = 180.0
"""How long a comparison waits for Spark to start again."""
SCHEDULER = "scheduler"
"""Who asks for a refresh that is due."""
ATTEMPTS = 3
"""How often a refresh starts over because its sources were altered, or refreshed, in the meantime."""


class NotFollowed(Exception):
    """A stream table did not reach the snapshot: it failed, or was left out."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(name_of(result)))
        self.result = result


def refresh(engine: Engine, table_id: StreamTableId, *, initiated_by: str, waits: bool) -> RefreshOutcome:
    """Bring one stream table up to the newest snapshot."""
    (result,) = refresh_all(engine, (table_id,), initiated_by=initiated_by, waits=waits)
    if isinstance(result, Failure):
        raise result.error
    return result


def refresh_all(
    engine: Engine,
    ids: Sequence[StreamTableId],
    *,
    initiated_by: str,
    waits: bool,
    asked_at: float | None = None,
) -> list[Result]:
    """Bring stream tables, given in dependency order, to one snapshot, and commit them together.

    A failure undoes only its own table; tables that read it are left out. So is a table that another
    session holds, unless the caller `waits` for it. A table that diverged is loaded again, unless it is set
    to stop on divergence. `asked_at`, a reading of `time.perf_counter`, is when the tables began to wait.
    """
    asked = asked_at or time.perf_counter()
    request = RefreshRequest(tuple(ids), initiated_by, waits, asked, can_start_over=True)
    results = _refresh_in_time(engine, request)
    diverged = repairable_failures(results)
    if not diverged:
        return results
    with engine.connection() as connection:
        for failure in diverged:
            assert isinstance(failure.error, Diverged)
            note_divergence(connection, failure.table, failure.error, Cause.DIVERGED, initiated_by)
        connection.commit()
    repaired = {name_of(result): result for result in _refresh_in_time(engine, request)}
    return [result if has_moved(result) else repaired.get(name_of(result), result) for result in results]


def _refresh_in_time(engine: Engine, request: RefreshRequest) -> list[Result]:
    """Refresh within the time limit of the tables."""
    try:
        with engine.timeouts.refreshing() as timeout:
            return _refresh_until_settled(engine, request, timeout)
    except RefreshTimedOut as error:
        if len(timeout.tables) == 1:
            return [Failure(timeout.tables[0], error)]
        raise


def _refresh_until_settled(engine: Engine, request: RefreshRequest, timeout: Timeout) -> list[Result]:
    """Start over while the sources, or the tables themselves, change under the refresh."""
    unsettled: PgTrickleError = _altered_again()
    for _ in range(ATTEMPTS):
        members: list[CompiledTable] = []
        try:
            members, failures = prepare_all(
                engine, request.ids, is_scheduled=request.initiated_by == SCHEDULER
            )
            timeout.doing = "reading what has changed"
            return [*failures, *_refresh_once(engine, request, members, failures)]
        except StateLost:
            _restore_state(engine, request.ids)
        except Altered:
            engine.forget(*request.ids)
            _repair_captures(engine, request.ids)
        except Overtaken:
            unsettled = busy_error(*(member.table for member in members))
        except WaitsForTriggers as waiting:
            unsettled = waiting
            if not _create_triggers(engine, request.ids):
                break
    raise unsettled


def _refresh_once(
    engine: Engine, request: RefreshRequest, members: Sequence[CompiledTable], failures: Sequence[Failure]
) -> list[Result]:
    """Claim the tables, take the snapshot, refresh wave by wave, commit."""
    if not members:
        return []
    is_stopped, is_committed = False, False
    names = tuple(str(member.table.name) for member in members)
    with (
        engine.tracer.span("refresh", tables=names, initiated_by=request.initiated_by) as span,
        engine.pool.connections(FOR_REFRESH) as connections,
    ):
        is_alone = not failures and can_go_alone(engine, members)
        is_alone = is_alone and not _loads_in_place(engine, connections, members)
        with engine.tracer.span("claim"):
            claim = (claim_alone if is_alone else claim_together)(engine, connections, members, request)
        try:
            results = refresh_waves(engine, claim, failures)
        except Unfollowable as value:
            reason = str(value)
        except StartOver as stopped:
            reason, request = "", replace(request, outpaced=stopped.instead)
            is_stopped = True
        except (PgTrickleError, DatabaseError) as error:
            if not is_alone:
                raise
            # a table alone has no savepoints: all of the transaction is undone
            check_ground(engine, claim.session, claim.members[0].table, error)
            failed: list[Result] = [failure_of(claim.members[0].table, error)]
            note_results(span, failed)
            return failed
        else:
            results = _commit(engine, claim, results)
            note_results(span, results)
            is_committed = True
    if is_committed:
        plan_ahead(engine, claim.members, results)
        return results
    if is_stopped:
        return _refresh_once(engine, request, members, failures)
    # PostgreSQL evaluates the query in another transaction, which no longer goes alone
    return _refresh_once(engine, request, [members[0].only_full(reason)], ())


def _loads_in_place(
    engine: Engine, connections: Sequence[Connection], members: Sequence[CompiledTable]
) -> bool:
    """Whether PostgreSQL evaluates the load of the only table: it then writes in the snapshot it reads."""
    (member,) = members
    if member.table.is_populated and member.table.reinit_reason is None:
        return False
    connection = connections[0]
    try:
        connection.execute(BRIEF_LOCKS)
        return loads_in_postgres(engine, connection, member.compilation)
    except DatabaseError:
        # a source was dropped or is locked, which the claim deals with
        return False
    finally:
        # the claim begins another transaction
        connection.rollback()


def _commit(engine: Engine, claim: Claim, results: Sequence[Result]) -> list[Result]:
    """Commit the refresh; the tables share the time that this takes."""
    began = time.perf_counter()
    with engine.tracer.span("commit"):
        claim.session.commit()
    share = 1000 * (time.perf_counter() - began) / max(1, sum(map(has_moved, results)))
    return [
        replace(result, wait_ms=claim.waited_ms, commit_ms=share)
        if isinstance(result, RefreshOutcome) and has_moved(result)
        else result
        for result in results
    ]


@contextmanager
def bring_up_to_date(
    engine: Engine, ids: Sequence[StreamTableId], wanted: RelationName
) -> Iterator[Connection]:
    """A transaction in which stream tables, given in dependency order, are up to date with what it sees.

    It commits when the caller leaves it, and is rolled back if the caller raises. Raises `NotFollowed` if
    the `wanted` table could not be refreshed.
    """
    request = RefreshRequest(tuple(ids), "verify", waits=True)
    for _ in range(ATTEMPTS):
        members, failures = prepare_all(engine, ids)
        if any(member.compilation.compiled is not None for member in members):
            # if Spark has died, wait for the next one outside of a transaction
            engine.supply.settle(SPARK_SECONDS)
        with engine.pool.connections(FOR_REFRESH) as connections:
            results: list[Result] = [*failures]
            try:
                if members:
                    claim = claim_together(engine, connections, members, request)
                    results += refresh_waves(engine, claim, failures)
            except SparkLost:
                continue
            except (Altered, Overtaken):
                engine.forget(*ids)
                continue
            _require_moved(wanted, results)
            yield connections[0]
            connections[0].commit()
            return
    raise _altered_again()


def _require_moved(wanted: RelationName, results: Sequence[Result]) -> None:
    """Raise if a table was not refreshed, with the failure that prevented it if there was one."""
    kept_back = [result for result in results if name_of(result) == wanted and not has_moved(result)]
    if kept_back:
        failures = [result for result in results if isinstance(result, Failure)]
        raise NotFollowed((failures or kept_back)[0])


def _altered_again() -> RefreshFailed:
    return RefreshFailed("the sources were altered during every attempt to refresh", hint="try again later")


def _repair_captures(engine: Engine, ids: Sequence[StreamTableId]) -> None:
    """Create triggers and buffers again that somebody has removed from the sources."""
    with engine.connection() as connection:
        for source in captured_sources(connection, ids):
            with suppress(PgTrickleError):
                repair(connection, source)


def _restore_state(engine: Engine, ids: Sequence[StreamTableId]) -> None:
    """Create the schema of the state again; the next attempt loads the tables and their state."""
    with engine.connection() as connection:
        connection.execute("select pgtrickle_internal.create_state()")
        for table in ids:
            mark_reinit(connection, table, "what pgtrickle keeps beside it was removed")
        connection.commit()


def _create_triggers(engine: Engine, ids: Sequence[StreamTableId]) -> bool:
    """Try to create the triggers that stream tables wait for; whether all of them exist now."""
    with engine.connection() as connection:
        return not any(retry_capture(connection, source) for source in sources_waited_for(connection, ids))
