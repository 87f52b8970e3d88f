"""What a log says about an event, in every interface: its level, its values, and no row of anybody's table.

Everybody who operates the sidecar reads its log, and not all of them may read the tables. PostgreSQL and
Spark quote values in messages, so these are left out here; the history has the message for the owner.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pgtrickle.model.errors import ConnectionFailed, Diverged, PgTrickleError, SparkFailed
from pgtrickle.model.hints import Interface
from pgtrickle.model.sentences import advice, sentence
from pgtrickle.model.settings import LogLevel
from pgtrickle.model.stream_table import Action
from pgtrickle.postgres.connection import DatabaseError

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent

_ABOUT_VALUES: Final = ("21", "22", "23")
"""Classes of SQLSTATE whose messages quote values."""
_OF_USERS: Final = ("38", "39", "P0")
"""Classes whose messages are written by functions of users."""
_QUOTED: Final = re.compile(r"""(["'])(?:(?!\1).)*\1""", re.DOTALL)


class OutageFilter:
    """Lets the first event of an outage through, and its end; a cause that changes meanwhile is not news."""

    def __init__(self) -> None:
        self._out: set[str] = set()

    def is_news(self, event: RefreshEvent) -> bool:
        """Whether the event should be logged."""
        if event.name.name:
            return True
        what = f"{event.subject} {event.database or ''}"
        if event.error is None:
            self._out.discard(what)
            return True
        is_first = what not in self._out
        self._out.add(what)
        return is_first


def level_of(event: RefreshEvent) -> LogLevel:
    """How much an event matters."""
    if event.error is not None:
        return LogLevel.ERROR
    if event.is_warning:
        return LogLevel.WARNING
    is_idle = event.outcome is not None and event.outcome.action is Action.NO_DATA
    return LogLevel.DEBUG if is_idle else LogLevel.INFO


def subject_of(event: RefreshEvent) -> str:
    """The stream table of an event, or the part of the sidecar that it is about; with its database."""
    subject = str(event.name) if event.name.name else event.subject
    if event.database is None or event.subject == "Spark":
        return subject
    return f"{event.database}: {subject}" if event.name.name else f"{subject} {event.database}"


def event_values(event: RefreshEvent, interface: Interface) -> dict[str, Any]:
    """An event as JSON. The keys are a stable interface."""
    outcome = event.outcome
    return {
        "at": event.at,
        "level": level_of(event).name,
        "event": event.kind,
        "database": event.database,
        "name": str(event.name) if event.name.name else None,
        "subject": None if event.name.name else event.subject,
        "action": outcome.action if outcome else None,
        "rows_inserted": outcome.rows_inserted if outcome else 0,
        "rows_deleted": outcome.rows_deleted if outcome else 0,
        "milliseconds": outcome.milliseconds if outcome else None,
        "wait_ms": outcome.wait_ms if outcome else None,
        "read_ms": outcome.read_ms if outcome else None,
        "compute_ms": outcome.compute_ms if outcome else None,
        "apply_ms": outcome.apply_ms if outcome else None,
        "commit_ms": outcome.commit_ms if outcome else None,
        "reason": outcome.reason if outcome else None,
        "note": event.note,
        "seconds": event.seconds,
        "error": _error_values(event.error, interface) if event.error else None,
    }


def logged_error(error: PgTrickleError, interface: Interface) -> str:
    """The code, message and hint of an error on one line."""
    values = _error_values(error, interface)
    said = " ".join(sentence(str(values[key])) for key in ("message", "detail") if values[key])
    text = f"{error.code}: {said}"
    return f"{text} Hint: {advice(values['hint'])}" if values["hint"] else text


def _error_values(error: PgTrickleError, interface: Interface) -> dict[str, Any]:
    cause = error.__cause__
    found = cause.sqlstate if isinstance(cause, DatabaseError) else None
    return {
        "code": error.code,
        "sqlstate": found or error.reported_sqlstate,
        "message": _without_values(error),
        "detail": error.detail if cause is None else None,
        "hint": error.hint_for(interface),
        "excerpt": error.excerpt,
    }


def _without_values(error: PgTrickleError) -> str:
    """The message of an error without values of rows."""
    message, cause = error.message, error.__cause__
    if isinstance(error, Diverged):
        rows = "; ".join(error.rows)
        return message.replace(rows, "pgtrickle.visible_repairs has them") if rows else message
    if isinstance(error, SparkFailed):
        return _QUOTED.sub(r"\1…\1", message)
    if cause is None or isinstance(error, ConnectionFailed):
        return message
    said = str(cause).strip()
    if isinstance(cause, DatabaseError):
        said = (cause.diag.message_primary or said).strip()
        kind = (cause.sqlstate or "")[:2]
        if kind in _OF_USERS:
            return message.replace(said, "a function of the query raised an error")
        if kind not in _ABOUT_VALUES:
            return message
    return message.replace(said, _QUOTED.sub(r"\1…\1", said)) if said else message
