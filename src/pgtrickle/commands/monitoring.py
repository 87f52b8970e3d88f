"""Reads how an installation fares: its checks, and the latest refreshes of all stream tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pgtrickle.commands.connections import open_installed
from pgtrickle.commands.status import PastRefresh, past_refresh
from pgtrickle.model.finding import Severity
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True, repr=False)
class HealthCheck(Record):
    """One check of the installation and what it found."""

    table_columns: ClassVar = ("name", "severity", "detail")

    name: str
    severity: Severity
    detail: str


def health(dsn: str) -> list[HealthCheck]:
    """The checks of the installation, in a fixed order."""
    with open_installed(dsn) as connection:
        rows = connection.execute("select check_name, severity, detail from pgtrickle.health_check()")
        return [HealthCheck(name, Severity(severity), detail) for name, severity, detail in rows]


def timeline(dsn: str, limit: int = 50, since: datetime | None = None) -> list[PastRefresh]:
    """The latest refreshes of all stream tables, newest first; `since` is the earliest start."""
    with open_installed(dsn) as connection:
        return read_refreshes(connection, limit=limit, since=since)


def read_refreshes(
    connection: Connection, *, limit: int, after: int | None = None, since: datetime | None = None
) -> list[PastRefresh]:
    """The same for callers that poll on their own connection; `after` is the number of an older refresh."""
    values = {"limit": limit, "after": after, "since": since}
    rows = connection.execute(load("pgtrickle.commands", "sql/timeline.sql"), values)
    return [past_refresh(row) for row in rows]
