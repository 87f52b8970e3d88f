"""Logs what a sidecar does, with Python's logging module. The values of an event are `record.pgtrickle`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pgtrickle.interfaces.logged_events import (
    OutageFilter,
    event_values,
    level_of,
    logged_error,
    subject_of,
)
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.hints import Interface
from pgtrickle.model.json_values import json_value
from pgtrickle.model.settings import LogFormat, LogLevel

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent

LOG: Final = logging.getLogger("pgtrickle")
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
_TIME: Final = "%Y-%m-%d %H:%M:%S %z"


class LoggedEvents:
    """Logs events: a refresh as INFO, or as DEBUG if no data had changed, and an error as ERROR."""

    def __init__(self) -> None:
        self._outages = OutageFilter()

    def __call__(self, event: RefreshEvent) -> None:
        """Log an event."""
        level = level_of(event).number
        if self._outages.is_news(event) and LOG.isEnabledFor(level):
            values = json_value(event_values(event, Interface.PYTHON))
            LOG.log(level, "%s: %s", subject_of(event), _text(event), extra={"pgtrickle": values})


def log_failure(failure: BaseException) -> None:
    """Log the error that has ended a sidecar; with its place in the code if it is none of ours."""
    is_ours = isinstance(failure, PgTrickleError)
    LOG.error("The sidecar has stopped: %s", failure, exc_info=None if is_ours else failure)


@contextmanager
def visible_log(level: LogLevel = LogLevel.INFO, log_format: LogFormat = LogFormat.TEXT) -> Iterator[None]:
    """Show the log on standard error, unless the program has configured logging itself."""
    if LOG.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    is_json = log_format is LogFormat.JSON
    handler.setFormatter(_JsonFormatter() if is_json else logging.Formatter(_FORMAT, _TIME))
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(level.number)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)


class _JsonFormatter(logging.Formatter):
    """One JSON object for each record: the values of an event, or time, level and message."""

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] | None = getattr(record, "pgtrickle", None)
        if values is None:
            at = datetime.fromtimestamp(record.created, UTC)
            values = {"at": at.isoformat(), "level": record.levelname, "message": record.getMessage()}
        return json.dumps(values, ensure_ascii=False)


def _text(event: RefreshEvent) -> str:
    if event.error is not None:
        return logged_error(event.error, Interface.PYTHON)
    outcome = event.outcome
    if outcome is None:
        return event.note or ""
    rows = f"+{outcome.rows_inserted} −{outcome.rows_deleted} rows"
    return f"{outcome.action.value}, {rows}, {outcome.milliseconds:.0f} ms ({outcome.reason})"
