"""Records a failed refresh: it is retried later, or waits for a person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pgtrickle.catalog.outcomes import mark_error, record_failure
from pgtrickle.catalog.repairs import Cause
from pgtrickle.catalog.requests import answer_refused
from pgtrickle.model.errors import (
    AttachedFailed,
    Diverged,
    ExecutorCannotConnect,
    RightLost,
    SourceChanged,
    UnsupportedQuery,
)
from pgtrickle.model.hints import Interface
from pgtrickle.model.settings import MAX_CONSECUTIVE_ERRORS
from pgtrickle.model.stream_table import Action, StreamTable
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.divergence import note_divergence
from pgtrickle.refresh.outcome import Failure, announce_failed
from pgtrickle.scheduler.policy.backoff import retry_delays

AWAY_DELAY: Final = timedelta(seconds=10)
"""How long to wait before trying again to read another database, or to read on another machine."""


def attempted_action(table: StreamTable) -> Action:
    """What a refresh that failed was for: it failed before it could say."""
    return Action(table.effective_mode.value) if table.effective_mode else Action.REINITIALIZE


def _delays(failure: Failure, max_errors: int) -> list[timedelta]:
    """When to retry after each failure in a row. What is out of reach comes back, so it suspends nothing."""
    if isinstance(failure.error, (AttachedFailed, ExecutorCannotConnect)):
        return [AWAY_DELAY] * (failure.table.consecutive_errors + 2)
    return [*retry_delays(max_errors)]


def note_failure(
    connection: Connection,
    failure: Failure,
    started: datetime,
    initiated_by: str,
    max_errors: int = MAX_CONSECUTIVE_ERRORS.default,
) -> None:
    """Record a failure in a transaction of its own; `max_errors` in a row suspend the stream table."""
    table, error = failure.table, failure.error
    answer_refused(connection, (table.id,), error)
    if isinstance(error, Diverged) and not table.repairs_itself:
        with connection.transaction():
            note_divergence(connection, table, error, Cause.DIVERGED, initiated_by)
        mark_error(
            connection, table.id, error.text_for(Interface.SQL), started_at=started, initiated_by=initiated_by
        )
    elif isinstance(error, (SourceChanged, UnsupportedQuery, RightLost)):
        # a retry cannot help; changing the query or the source can
        mark_error(
            connection, table.id, error.text_for(Interface.SQL), started_at=started, initiated_by=initiated_by
        )
    else:
        record_failure(
            connection,
            table.id,
            error.text_for(Interface.SQL),
            action=attempted_action(table),
            started_at=started,
            initiated_by=initiated_by,
            delays=_delays(failure, max_errors),
        )
    announce_failed(connection, table, error)
    connection.commit()
