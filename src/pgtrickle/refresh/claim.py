"""Claims stream tables for a refresh: nobody else refreshes or alters them until its transaction ends.

A claim opens the session of the refresh too, in one of two orders. One table alone is claimed first; the
snapshot is then taken on a second connection, where Spark's tasks can share it. Several tables are claimed
inside their snapshot, on the one connection that reads what it wrote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pgtrickle.catalog.claims import claim_all
from pgtrickle.catalog.identity import Installation
from pgtrickle.changes.source_window import buffers
from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import RefreshMode, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.decide.cost_model import Choice
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.faults import Altered
from pgtrickle.refresh.session import Session, open_shareable, open_together

SERIALIZATION_FAILURE = "40001"
UNDEFINED_TABLE = "42P01"


class Overtaken(Exception):
    """Another session committed a refresh, or an alteration, after our snapshot was taken."""


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """Which stream tables to refresh, in dependency order, who asked, and whether to wait for claims.

    `asked_at` is a reading of `time.perf_counter`.
    """

    ids: tuple[StreamTableId, ...]
    initiated_by: str
    waits: bool
    asked_at: float = field(default_factory=time.perf_counter)
    can_start_over: bool = False
    """Whether a refresh that takes too long may be stopped, because the caller starts another one."""
    outpaced: Choice | None = None
    """What is done about the only table, after the other strategy was stopped."""

    @property
    def waited_ms(self) -> float:
        """How long ago somebody asked."""
        return 1000 * (time.perf_counter() - self.asked_at)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claimed tables, the session that holds them, and the tables that another session holds."""

    request: RefreshRequest
    session: Session
    members: tuple[CompiledTable, ...]
    missing: tuple[StreamTable, ...] = ()
    waited_ms: float = 0.0


def can_go_alone(engine: Engine, members: Sequence[CompiledTable]) -> bool:
    """Whether Spark's tasks can share the snapshot: one table, that reads only tables which others write.

    If PostgreSQL will probably evaluate the query, it does that on the connection that writes.
    """
    if len(members) != 1:
        return False
    found, table = members[0].compilation, members[0].table
    if found.compiled is None or found.compiled.auxiliaries:
        return False
    if table.mode is RefreshMode.AUTO and (table.state_is_behind or engine.costs.was_full(table.id)):
        return False
    return not found.upstream and not found.compiled.asks_on_apply


def claim_alone(
    engine: Engine,
    connections: Sequence[Connection],
    members: Sequence[CompiledTable],
    request: RefreshRequest,
) -> Claim:
    """Claim one stream table, then take its snapshot where others can share it; raise Busy if it is held."""
    write, read = connections
    held = _hold(engine, write, members, request)
    sources = [source.table for source in members[0].compilation.sources]
    session = _open(lambda: open_shareable(write, read, sources))
    return Claim(request, session, held, waited_ms=request.waited_ms)


def claim_together(
    engine: Engine,
    connections: Sequence[Connection],
    members: Sequence[CompiledTable],
    request: RefreshRequest,
) -> Claim:
    """Take one snapshot, and claim stream tables in it; raise Busy if another session holds all of them."""
    connection, newest = connections
    sources = {source for member in members for source in member.compilation.sources}
    # a buffer must not be truncated between our snapshot and our claim
    kept = {buffer for source in sources for buffer in buffers(source.relation)}
    relations = {source.table for source in sources} | kept | {member.table.name for member in members}
    session = _open(lambda: open_together(connection, newest, sorted(relations)))
    held = _hold(engine, connection, members, request)
    ids = {member.table.id for member in held}
    missing = tuple(member.table for member in members if member.table.id not in ids)
    return Claim(request, session, held, missing, request.waited_ms)


def busy_error(*tables: StreamTable) -> Busy:
    """The error for stream tables that another session holds."""
    names = ", ".join(str(table.name) for table in tables)
    verb = "is" if len(tables) == 1 else "are"
    return Busy(f"{names} {verb} being refreshed by another session", hint="try again in a moment")


def _open(open_session: Callable[[], Session]) -> Session:
    """Open the session; recognise a source that was dropped, or stays locked."""
    try:
        return open_session()
    except DatabaseError as error:
        if error.sqlstate == UNDEFINED_TABLE:
            raise Altered from error
        if error.sqlstate == Busy.sqlstate:
            raise Busy("a source is locked by another session", hint="try again in a moment") from error
        raise


def _hold(
    engine: Engine, connection: Connection, members: Sequence[CompiledTable], request: RefreshRequest
) -> tuple[CompiledTable, ...]:
    """Lock the catalog rows, and return the members as they are now, without those that others hold."""
    tables = [member.table for member in members]

    def check(found: Installation) -> None:
        if engine.has_moved(found):
            # what was compiled and cached may be wrong on another server
            raise Altered

    try:
        found = claim_all(connection, [table.id for table in tables], wait=request.waits, check=check)
    except DatabaseError as error:
        if error.sqlstate == SERIALIZATION_FAILURE:
            raise Overtaken from error
        if error.sqlstate == Busy.sqlstate:
            raise busy_error(*tables) from error
        raise
    if not found:
        raise busy_error(*tables)
    held = {table.id: table for table in found}
    if any(_definition(held[t.id]) != _definition(t) for t in tables if t.id in held):
        raise Altered
    return tuple(member.with_table(held[member.table.id]) for member in members if member.table.id in held)


def _definition(table: StreamTable) -> tuple[object, ...]:
    """What the compilation of a stream table depends on."""
    return table.query, table.mode, table.ground_generation
