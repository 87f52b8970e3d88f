"""The index by which refreshes find whole rows, which the sidecar creates after the first load if it can."""

from __future__ import annotations

from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.locking import SHARE, lock_tables


def lock_for_row_index(connection: Connection, table: StreamTable) -> None:
    """Lock a table that has no such index as CREATE INDEX does, before a load; readers do not notice.

    If the lock were taken after the load, a session that wants an index of its own could deadlock with us.
    """
    row = connection.execute("select pgtrickle_internal.row_index(%s) is null", (table.relation,)).fetchone()
    assert row is not None
    if row[0]:
        lock_tables(connection, (table.name,), SHARE)


def finish_row_index(connection: Connection, table: StreamTable) -> bool:
    """Create the index after a load, unless there is one; whether there is one then."""
    row = connection.execute("select pgtrickle_internal.finish_row_index(%s)", (table.relation,)).fetchone()
    assert row is not None
    return bool(row[0])
