"""Reads the alerts that a database keeps, for programs that receive no notifications."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from pgtrickle.commands.connections import open_installed
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import Connection

POLL_SECONDS: Final = 1.0
OVERLAP: Final = timedelta(minutes=1)
"""How far each poll reaches back: an alert becomes visible only when its transaction commits."""


@dataclass(frozen=True, slots=True, repr=False)
class Alert(Record):
    """One alert. `details` is what the notification says; docs/OPERATIONS.md lists the events."""

    table_columns: ClassVar = ("at", "event", "stream_table", "details")

    alert_id: str
    at: datetime
    event: str
    stream_table: str | None
    details: dict[str, Any]


def alerts(dsn: str, since: datetime | None = None) -> list[Alert]:
    """The alerts since a moment, oldest first; without one, those of the last hour."""
    with open_installed(dsn) as connection:
        return read_alerts(connection, since)


def follow_alerts(dsn: str, since: datetime | None = None) -> Generator[Alert]:
    """The alerts since a moment, and then each new one, by polling; without one, only new ones.

    An alert whose transaction stays open for more than a minute after it may be left out.
    """
    with open_installed(dsn) as connection:
        known: dict[str, datetime] = {}
        start = since
        if start is None:
            start = _now(connection)
        while True:
            for alert in read_alerts(connection, start):
                if alert.alert_id not in known:
                    known[alert.alert_id] = alert.at
                    yield alert
            start = max(start, _now(connection) - OVERLAP)
            known = {number: at for number, at in known.items() if at >= start}
            time.sleep(POLL_SECONDS)


def read_alerts(connection: Connection, since: datetime | None) -> list[Alert]:
    """The alerts since a moment, for callers that poll on their own connection."""
    rows = connection.execute(
        "select alert_id, at, event, stream_table, details from pgtrickle.alerts(%s)", (since,)
    )
    return [Alert(*row) for row in rows]


def moment(dsn: str, text: str) -> datetime:
    """The moment that a text means: a timestamp, or a length of time before now such as `1h` or `2 days`."""
    with open_installed(dsn) as connection:
        row = connection.execute("select pgtrickle_internal.moment(%s)", (text,)).fetchone()
        assert row is not None
        return row[0]  # type: ignore[no-any-return]


def _now(connection: Connection) -> datetime:
    row = connection.execute("select clock_timestamp()").fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]
