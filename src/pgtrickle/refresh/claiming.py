"""Taking stream tables for a refresh: nobody else refreshes or alters them until it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgtrickle.catalog.identity import Installation
from pgtrickle.catalog.outcomes import claim, claim_all
from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.blaming import Altered
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session

SERIALIZATION_FAILURE = "40001"
UNDEFINED_TABLE = "42P01"


class Overtaken(Exception):
    """Another session has committed a refresh, or an alteration, after our snapshot was taken."""


def begun(begin: Callable[[], Session]) -> Session:
    """Take the snapshot; a source that is gone, or locked for long, is told apart."""
    try:
        return begin()
    except DatabaseError as error:
        if error.sqlstate == UNDEFINED_TABLE:
            raise Altered from error
        if error.sqlstate == Busy.sqlstate:
            raise Busy("a source is locked by another session", hint="try again in a moment") from error
        raise


def claimed(engine: Engine, connection: Connection, table: StreamTable, waits: bool) -> StreamTable:
    """Take one stream table, before any snapshot; raise Busy if another session has it."""
    try:
        found = claim(connection, table.id, wait=waits, check=_known_to(engine))
    except DatabaseError as error:
        if error.sqlstate == Busy.sqlstate:
            raise busy(table) from error
        raise
    if found is None:
        raise busy(table)
    return _as_compiled(table, found)


def all_claimed(
    engine: Engine, connection: Connection, tables: Sequence[StreamTable], waits: bool
) -> dict[StreamTableId, StreamTable]:
    """Take stream tables in the snapshot of the connection; those that another session has are missing."""
    try:
        found = claim_all(connection, [table.id for table in tables], wait=waits, check=_known_to(engine))
    except DatabaseError as error:
        if error.sqlstate == SERIALIZATION_FAILURE:
            raise Overtaken from error
        if error.sqlstate == Busy.sqlstate:
            raise busy(*tables) from error
        raise
    known = {table.id: table for table in tables}
    return {table.id: _as_compiled(known[table.id], table) for table in found}


def busy(*tables: StreamTable) -> Busy:
    """The error for stream tables that another session has."""
    names = ", ".join(str(table.name) for table in tables)
    verb = "is" if len(tables) == 1 else "are"
    return Busy(f"{names} {verb} being refreshed by another session", hint="try again in a moment")


def _known_to(engine: Engine) -> Callable[[Installation], None]:
    def check(found: Installation) -> None:
        if engine.has_moved(found):
            # what was compiled and kept may not be true there
            raise Altered

    return check


def _as_compiled(compiled: StreamTable, found: StreamTable) -> StreamTable:
    if (found.query, found.mode, found.ground_generation) != (
        compiled.query,
        compiled.mode,
        compiled.ground_generation,
    ):
        raise Altered
    return found
