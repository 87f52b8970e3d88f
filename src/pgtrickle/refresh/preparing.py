"""Before a refresh: the query is compiled, and fits what its sources are now."""

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
from pgtrickle.refresh.comparing import compare_sources
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.results import Failure, failure_of


def prepared_all(
    engine: Engine, ids: Sequence[StreamTableId]
) -> tuple[list[tuple[StreamTable, Compilation]], list[Failure]]:
    """The tables that can be refreshed, and those that cannot; one that was dropped is neither."""
    tables: list[tuple[StreamTable, Compilation]] = []
    failures: list[Failure] = []
    compared: set[Source] = set()
    with engine.connection() as connection:
        known = {table.id: table for table in some_stream_tables(connection, ids)}
        unreadable = untrusted_reads(connection, ids)
    if (limit := engine.limits.current) is not None:
        engine.limits.allow(limit, list(known.values()))
    for table in known.values():
        # somebody may have emptied all caches
        engine.notice_generation(table.cache_generation)
    for table in (known[table_id] for table_id in ids if table_id in known):
        try:
            if table.id in unreadable:
                raise unreadable[table.id]
            _require_triggers(table)
            found = _compiled_before(engine, table)
            ready = (table, found) if found else prepared(engine, table.id)
            ready = (ready[0], engine.as_it_may_run(table.id, ready[1]))
            if table.status is not Status.SUSPENDED:
                compare_sources(engine, ready[1], compared)
            tables.append(ready)
        except UnknownStreamTable:
            continue
        except (Busy, CopiedDatabase, NotInstalled):
            raise
        except (PgTrickleError, DatabaseError) as error:
            engine.limits.check(error)
            failures.append(failure_of(table, error))
    return tables, failures


def _require_triggers(table: StreamTable) -> None:
    """Raise where a source has no triggers yet: what it changes meanwhile would be missed."""
    if table.waits_for is not None:
        raise WaitsForTriggers(
            f"{table.name} is not refreshed: {table.waits_for}",
            hint="it goes on as soon as they have been created",
        )


def _compiled_before(engine: Engine, table: StreamTable) -> Compilation | None:
    """What was compiled for the table, where the catalog tells it too."""
    if table.ground_error is not None:
        return None
    known = engine.at_hand(table)
    return known if known is not None and _is_noted(table, known) else None


def prepared(engine: Engine, table_id: StreamTableId) -> tuple[StreamTable, Compilation]:
    """The table and its compiled query; compiled now if it was not before."""
    with engine.connection() as connection:
        # nothing may be adjusted to what is on another server
        engine.has_moved(installation(connection))
        table = stream_table(connection, table_id)
        engine.notice_generation(table.cache_generation)
        if engine.is_outdated(table):
            engine.forget(table_id)
        if engine.known(table_id) is None or table.ground_error is not None:
            table = _settled(engine, connection, table)
        _require_triggers(table)
        if unreadable := untrusted_reads(connection, [table_id]):
            # PostgreSQL reads constants while it parses a query, which may be all it takes
            raise unreadable[table_id]
        found = engine.compiled(connection, table)
        if not _is_noted(table, found):
            set_compiled(
                connection, table_id, found.effective_mode, found.reason, follows_clock=found.follows_clock
            )
        connection.commit()
        return table, found


def _is_noted(table: StreamTable, found: Compilation) -> bool:
    """Whether the catalog tells what the compiler found."""
    stored = (table.effective_mode, table.downgrade_reason or "", table.follows_clock)
    return stored == (found.effective_mode, found.reason, found.follows_clock)


def _settled(engine: Engine, connection: Connection, table: StreamTable) -> StreamTable:
    """The table, once its query fits what it relies on now; raises where it cannot."""
    if not ground_state(connection, [table.id]).is_moved and table.ground_error is None:
        return table
    engine.forget(table.id)
    connection.rollback()
    settle(connection, table.id, waits=True)
    return stream_table(connection, table.id)
