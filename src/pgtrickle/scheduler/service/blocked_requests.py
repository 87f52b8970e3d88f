"""Answers requests at once that cannot be met until a person acts."""

from __future__ import annotations

from collections.abc import Iterable

from pgtrickle.catalog.claims import check_not_suspended, check_startable
from pgtrickle.catalog.requests import answer_refused
from pgtrickle.catalog.tables import some_stream_tables
from pgtrickle.model.errors import Drained, SourceGated, Suspended
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection


def refuse_blocked(connection: Connection, tables: Iterable[StreamTableId]) -> None:
    """Answer the requests for tables that are suspended, gated or drained with the error that says so."""
    for table in some_stream_tables(connection, list(tables)):
        try:
            check_not_suspended(table)
            check_startable(connection, table)
        except (Suspended, SourceGated, Drained) as refusal:
            answer_refused(connection, (table.id,), refusal)
