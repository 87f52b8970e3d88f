"""What follows from a refresh that failed: a later attempt, or a person who has to look."""

from __future__ import annotations

from datetime import datetime

from pgtrickle.catalog.outcomes import mark_error, record_failure
from pgtrickle.model.errors import SourceChanged, UnsupportedQuery
from pgtrickle.model.stream_table import Action
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.announcing import announce_failed
from pgtrickle.refresh.story import Failure


def note_failure(connection: Connection, failure: Failure, started: datetime, initiated_by: str) -> None:
    """Write a failure down, in a transaction of its own."""
    table, error = failure.table, failure.error
    if isinstance(error, (SourceChanged, UnsupportedQuery)):
        # trying again cannot help; altering the query, or the source, can
        mark_error(connection, table.id, str(error))
    else:
        action = Action(table.effective_mode.value) if table.effective_mode else Action.REINITIALIZE
        record_failure(
            connection, table.id, str(error), action=action, started_at=started, initiated_by=initiated_by
        )
    announce_failed(connection, table, error)
    connection.commit()
