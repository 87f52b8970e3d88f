"""Prepares a refresh: the query is compiled, fits its sources as they are now, and copies are compared."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.catalog.dependencies import ground_state, settle
from pgtrickle.catalog.identity import installation
from pgtrickle.catalog.outcomes import set_compiled
from pgtrickle.catalog.tables import some_stream_tables, stream_table
from pgtrickle.catalog.trust import untrusted_reads
from pgtrickle.model.errors import (
    Busy,
    CopiedDatabase,
    NotInstalled,
    PgTrickleError,
    UnknownStreamTable,
    WaitsForTriggers,
)
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.locking import SHORT_LOCKS, is_contention
from pgtrickle.refresh.compilation import Compilation, CompiledTable
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.faults import AGAIN
from pgtrickle.refresh.outcome import Failure, failure_of
from pgtrickle.refresh.source_copies import compare_sources


def prepare_all(
    engine: Engine, ids: Sequence[StreamTableId], *, is_scheduled: bool = False
) -> tuple[list[CompiledTable], list[Failure]]:
    """Prepare tables; returns those that can be refreshed, and the failures. Dropped tables are neither."""
    members: list[CompiledTable] = []
    failures: list[Failure] = []
    compared: set[Source] = set()
    with engine.connection() as connection:
        known = {table.id: table for table in some_stream_tables(connection, ids)}
        unreadable = untrusted_reads(connection, ids)
    if (timeout := engine.timeouts.current) is not None:
        engine.timeouts.allow(timeout, list(known.values()))
    for table in known.values():
        # a user may have cleared all caches
        engine.notice_generation(table.cache_generation)
    for table in (known[table_id] for table_id in ids if table_id in known):
        try:
            if table.id in unreadable:
                raise unreadable[table.id]
            _require_triggers(table)
            known_before = _compiled_before(engine, table)
            member = CompiledTable(table, known_before) if known_before else prepare(engine, table.id)
            compilation = engine.as_it_may_run(table.id, member.compilation)
            if table.status is not Status.SUSPENDED:
                compare_sources(engine, compilation, compared, is_scheduled=is_scheduled)
            members.append(CompiledTable(member.table, compilation))
        except UnknownStreamTable:
            continue
        except (Busy, CopiedDatabase, NotInstalled):
            raise
        except (PgTrickleError, DatabaseError) as error:
            engine.timeouts.check(error)
            failures.append(failure_of(table, error))
    return members, failures


def _require_triggers(table: StreamTable) -> None:
    """Raise if a source has no triggers yet: its changes in the meantime would be missed."""
    if table.waits_for is not None:
        raise WaitsForTriggers(
            f"{table.name} is not refreshed: {table.waits_for}",
            hint="the sidecar keeps trying to create them",
        )


def _compiled_before(engine: Engine, table: StreamTable) -> Compilation | None:
    """The compilation that the process has, if the catalog agrees with it."""
    if table.ground_error is not None:
        return None
    known = engine.cached_compilation(table)
    return known if known is not None and _is_recorded(table, known) else None


def prepare(engine: Engine, table_id: StreamTableId) -> CompiledTable:
    """Compile the query of a table, unless it was compiled before."""
    with engine.connection() as connection:
        # nothing may be adapted to what another server has
        engine.has_moved(installation(connection))
        table = stream_table(connection, table_id)
        engine.notice_generation(table.cache_generation)
        if engine.is_outdated(table):
            engine.forget(table_id)
        if engine.last_compilation(table_id) is None or table.ground_error is not None:
            table = _settle(engine, connection, table)
        # PostgreSQL locks what it analyses, and another session can hold a source for any length of time
        connection.execute(SHORT_LOCKS)
        _require_triggers(table)
        if unreadable := untrusted_reads(connection, [table_id]):
            # PostgreSQL evaluates constants while it parses a query, and that can run code
            raise unreadable[table_id]
        try:
            found = engine.compilation(connection, table)
        except DatabaseError as error:
            if not is_contention(error):
                raise
            raise Busy(f"a source of {table.name} is locked by another session", hint=AGAIN) from error
        if not _is_recorded(table, found):
            set_compiled(
                connection, table_id, found.effective_mode, found.reason, follows_clock=found.follows_clock
            )
        connection.commit()
        return CompiledTable(table, found)


def _is_recorded(table: StreamTable, found: Compilation) -> bool:
    """Whether the catalog has recorded the result of the compiler."""
    stored = (table.effective_mode, table.downgrade_reason or "", table.follows_clock)
    return stored == (found.effective_mode, found.reason, found.follows_clock)


def _settle(engine: Engine, connection: Connection, table: StreamTable) -> StreamTable:
    """Adapt the table to what it relies on now; raises if its query no longer fits."""
    if not ground_state(connection, [table.id]).is_moved and table.ground_error is None:
        return table
    engine.forget(table.id)
    connection.rollback()
    settle(connection, table.id, waits=True)
    return stream_table(connection, table.id)
