"""Alerts as the API shows them. The reason of a refresh may quote data, so not everybody gets it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pgtrickle.commands.alerts import Alert
from pgtrickle.interfaces.http.table_row import time_text

_FROM_HISTORY: Final = "refresh_completed"
"""The only event that comes from the history; all others were sent to every role that listens."""


def alert_values(alert: Alert, *, with_errors: bool) -> dict[str, Any]:
    """An alert."""
    details = alert.details
    if alert.event == _FROM_HISTORY and not with_errors:
        details = {**details, "reason": None}
    return {**asdict(alert), "at": time_text(alert.at), "details": details}
