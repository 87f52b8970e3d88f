"""Before a refresh: the query is compiled, and fits what its sources are now."""

from __future__ import annotations

from pgtrickle.catalog.dependencies import changed, reanalyse
from pgtrickle.catalog.outcomes import set_compiled
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.errors import SourceChanged
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.engine import Engine


def prepared(engine: Engine, table_id: StreamTableId) -> tuple[StreamTable, Compilation]:
    """The table and its compiled query; compiled now if it was not before."""
    with engine.connection() as connection:
        table = stream_table(connection, table_id)
        engine.notice_generation(table.cache_generation)
        known = engine.known(table_id)
        if known is None and changed(connection, table_id):
            connection.rollback()
            _readjust(engine, connection, table_id)
            table = stream_table(connection, table_id)
        found = engine.compiled(connection, table)
        stored = (table.effective_mode, table.downgrade_reason or "", table.follows_clock)
        if stored != (found.effective_mode, found.reason, found.follows_clock):
            set_compiled(
                connection, table_id, found.effective_mode, found.reason, follows_clock=found.follows_clock
            )
        connection.commit()
        return table, found


def _readjust(engine: Engine, connection: Connection, table_id: StreamTableId) -> None:
    """Fit a stream table to sources that were altered; its rows are to be loaded anew."""
    engine.forget(table_id)
    changes = changed(connection, table_id)
    for change in changes:
        if change.is_gone:
            raise SourceChanged(change.what, hint="alter the query, or drop the stream table")
    if changes:
        reanalyse(connection, table_id, changes[0].what)
    connection.commit()
