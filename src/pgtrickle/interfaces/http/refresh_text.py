"""Refreshes as the API shows them. Reasons and error texts may quote data, so not everybody gets them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pgtrickle.commands.status import PastRefresh
from pgtrickle.interfaces.http.table_row import time_text
from pgtrickle.model.hints import Interface

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent


def past_values(past: PastRefresh, *, with_errors: bool) -> dict[str, Any]:
    """A refresh of the history."""
    return {
        "refresh_id": past.refresh_id,
        "name": str(past.name),
        "action": past.action.value,
        "status": past.status,
        "at": time_text(past.started_at),
        "ms": past.milliseconds,
        "read_ms": past.read_ms,
        "compute_ms": past.compute_ms,
        "apply_ms": past.apply_ms,
        "rows_inserted": past.rows_inserted,
        "rows_deleted": past.rows_deleted,
        "reason": past.reason if with_errors else None,
        "error": past.error if with_errors else None,
        "initiated_by": past.initiated_by,
    }


def event_values(event: RefreshEvent, *, with_errors: bool) -> dict[str, Any]:
    """A refresh of this process, which has no number yet."""
    outcome, error = event.outcome, event.error
    milliseconds = outcome.milliseconds if outcome else None
    return {
        "refresh_id": None,
        "name": str(event.name),
        "action": outcome.action.value if outcome else event.attempted.value if event.attempted else None,
        "status": "COMPLETED" if outcome else "FAILED",
        "at": time_text(event.at - timedelta(milliseconds=milliseconds or 0)),
        "ms": milliseconds,
        "read_ms": outcome.read_ms if outcome else None,
        "compute_ms": outcome.compute_ms if outcome else None,
        "apply_ms": outcome.apply_ms if outcome else None,
        "rows_inserted": outcome.rows_inserted if outcome else 0,
        "rows_deleted": outcome.rows_deleted if outcome else 0,
        "reason": outcome.reason if outcome and with_errors else None,
        "error": error.text_for(Interface.SQL) if error and with_errors else None,
        "initiated_by": None,
    }
