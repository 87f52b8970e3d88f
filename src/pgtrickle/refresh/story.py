"""The story of a refresh: claim, snapshot, window, compute, apply, commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pgtrickle.catalog.outcomes import claim
from pgtrickle.catalog.tables import stream_table
from pgtrickle.changes.window import buffers
from pgtrickle.model.errors import (
    Busy,
    PgTrickleError,
    RefreshFailed,
    UnknownStreamTable,
)
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import Action, RefreshOutcome, Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.pool import FOR_REFRESH
from pgtrickle.refresh.blaming import Altered, check_ground, explained
from pgtrickle.refresh.comparing import compare_sources
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.preparing import prepared
from pgtrickle.refresh.session import Session, alone, together
from pgtrickle.refresh.step import refreshed
from pgtrickle.refresh.unfollowable import Unfollowable

SERIALIZATION_FAILURE = "40001"
UNDEFINED_TABLE = "42P01"

ATTEMPTS = 3
"""How often a refresh starts over because what it reads was altered in the meantime."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A refresh that left everything as it was."""

    table: StreamTable
    error: PgTrickleError


Result = RefreshOutcome | Failure


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

    One that fails leaves the others as they are, except those above it, which then wait.
    """
    for _ in range(ATTEMPTS):
        tables, failures = _prepared_all(engine, ids)
        try:
            if len(tables) == 1 and not failures and _can_go_alone(tables[0][1]):
                return [_alone(engine, *tables[0], initiated_by, waits)]
            return [*failures, *_together(engine, tables, initiated_by, waits, failures)]
        except Altered:
            engine.forget(*ids)
    raise _restless()


@contextmanager
def brought_up_to_date(engine: Engine, ids: Sequence[StreamTableId]) -> Iterator[Connection]:
    """A transaction in which stream tables, given in dependency order, have followed all it sees.

    It commits when the caller is done with it, and keeps nothing if the caller raises.
    """
    for _ in range(ATTEMPTS):
        tables, failures = _prepared_all(engine, ids)
        with engine.connection() as connection:
            try:
                results = [*failures, *_followed(engine, connection, tables, "verify", True, failures)]
            except Altered:
                engine.forget(*ids)
                continue
            for result in results:
                if isinstance(result, Failure):
                    raise result.error
            yield connection
            connection.commit()
            return
    raise _restless()


def _restless() -> RefreshFailed:
    return RefreshFailed("the sources are being altered again and again", hint="try again later")


def _prepared_all(
    engine: Engine, ids: Sequence[StreamTableId]
) -> tuple[list[tuple[StreamTable, Compilation]], list[Failure]]:
    """The tables that can be refreshed, and those that cannot; one that was dropped is neither."""
    tables: list[tuple[StreamTable, Compilation]] = []
    failures: list[Failure] = []
    compared: set[Source] = set()
    for table_id in ids:
        try:
            table, found = prepared(engine, table_id)
            if table.status is not Status.SUSPENDED:
                compare_sources(engine, found, compared)
            tables.append((table, found))
        except UnknownStreamTable:
            continue
        except Busy:
            raise
        except (PgTrickleError, DatabaseError) as error:
            with engine.connection() as connection:
                table = stream_table(connection, table_id)
            failures.append(Failure(table, explained(table, error)))
    return tables, failures


def _can_go_alone(found: Compilation) -> bool:
    """Whether Spark's tasks can share what it reads: only tables that others write, in one snapshot."""
    return found.compiled is not None and not found.upstream and not found.compiled.asks_on_apply


def _alone(engine: Engine, table: StreamTable, found: Compilation, initiated_by: str, waits: bool) -> Result:
    with engine.pool.connections(FOR_REFRESH) as (write, read):
        claimed = _claimed(write, table, waits)
        session = _begun(lambda: alone(write, read, [source.table for source in found.sources]))
        if claimed.status is Status.SUSPENDED:
            return _suspended(claimed)
        try:
            outcome = refreshed(engine, session, claimed, found, initiated_by)
        except Unfollowable as value:
            reason = str(value)
        except (PgTrickleError, DatabaseError) as error:
            check_ground(engine, session, error)
            return Failure(claimed, explained(claimed, error))
        else:
            write.commit()
            # nothing was written here; a rollback would forget what is prepared
            read.commit()
            return outcome
    (result,) = _together(engine, [(table, found.only_full(reason))], initiated_by, waits)
    return result


def _together(
    engine: Engine,
    tables: Sequence[tuple[StreamTable, Compilation]],
    initiated_by: str,
    waits: bool,
    failures: Sequence[Failure] = (),
) -> list[Result]:
    with engine.connection() as connection:
        results = _followed(engine, connection, tables, initiated_by, waits, failures)
        connection.commit()
        return results


def _followed(
    engine: Engine,
    connection: Connection,
    tables: Sequence[tuple[StreamTable, Compilation]],
    initiated_by: str,
    waits: bool,
    failures: Sequence[Failure],
) -> list[Result]:
    """All tables in one snapshot on one connection, each in a savepoint; the caller commits."""
    sources = {source for _, found in tables for source in found.sources}
    # a buffer must not be emptied between our snapshot and our claim
    kept = {buffer for source in sources for buffer in buffers(source.relation)}
    relations = {source.table for source in sources} | kept | {table.name for table, _ in tables}
    session = _begun(lambda: together(connection, sorted(relations)))
    claimed = [_claimed(connection, table, waits) for table, _ in tables]
    results: list[Result] = []
    failed = {failure.table.name for failure in failures}
    for table, (_, found) in zip(claimed, tables, strict=True):
        result = _member(engine, session, table, found, initiated_by, failed)
        if isinstance(result, Failure) or result.action is Action.SKIP:
            failed.add(table.name)
        results.append(result)
    return results


def _begun(begin: Callable[[], Session]) -> Session:
    """Take the snapshot; a source that is gone, or locked for long, is told apart."""
    try:
        return begin()
    except DatabaseError as error:
        if error.sqlstate == UNDEFINED_TABLE:
            raise Altered from error
        if error.sqlstate == Busy.sqlstate:
            raise Busy("a source is locked by another session", hint="try again in a moment") from error
        raise


def _member(
    engine: Engine,
    session: Session,
    table: StreamTable,
    found: Compilation,
    initiated_by: str,
    failed: set[RelationName],
) -> Result:
    """One of several in a transaction; a failure undoes only this one."""
    if table.status is Status.SUSPENDED:
        return _suspended(table)
    missing = sorted(failed & {source.name for source in found.upstream})
    if missing:
        return RefreshOutcome(table.name, Action.SKIP, 0, 0, 0.0, f"waits for {missing[0]}, which failed")
    try:
        with session.write.transaction():
            return refreshed(engine, session, table, found, initiated_by)
    except Unfollowable as value:
        return _member(engine, session, table, found.only_full(str(value)), initiated_by, failed)
    except (PgTrickleError, DatabaseError) as error:
        check_ground(engine, session, error)
        return Failure(table, explained(table, error))


def _suspended(table: StreamTable) -> RefreshOutcome:
    return RefreshOutcome(table.name, Action.SKIP, 0, 0, 0.0, "it is suspended")


def _claimed(connection: Connection, table: StreamTable, waits: bool) -> StreamTable:
    busy = Busy(f"{table.name} is being refreshed by another session", hint="try again in a moment")
    try:
        claimed = claim(connection, table.id, wait=waits)
    except DatabaseError as error:
        # another session committed a refresh of it after our snapshot was taken
        if error.sqlstate in (SERIALIZATION_FAILURE, Busy.sqlstate):
            raise busy from error
        raise
    if claimed is None:
        raise busy
    if (claimed.query, claimed.mode) != (table.query, table.mode):
        raise Altered
    return claimed
