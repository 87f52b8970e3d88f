"""Reads everything about all stream tables at once, for an overview that follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.commands.status import StreamTableStatus, read_statuses
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import Action, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

_PACKAGE: Final = "pgtrickle.commands"


@dataclass(frozen=True, slots=True, repr=False)
class LastRefresh(Record):
    """The last refresh that succeeded."""

    refresh_id: int
    at: datetime
    action: Action
    rows_inserted: int
    rows_deleted: int
    milliseconds: float


@dataclass(frozen=True, slots=True, repr=False)
class TableOverview(Record):
    """A stream table: its number, its status, since when it has been failing, and its last refresh."""

    id: StreamTableId
    status: StreamTableStatus
    failing_since: datetime | None
    last: LastRefresh | None


@dataclass(frozen=True, slots=True, repr=False)
class ServiceFacts(Record):
    """The database, its version of pgtrickle, whether a sidecar serves it, and whether it is drained."""

    database: str
    version: str
    is_served: bool
    is_drained: bool


def read_service_facts(connection: Connection) -> ServiceFacts:
    """What is true of the whole database."""
    row = connection.execute(load(_PACKAGE, "sql/service_facts.sql")).fetchone()
    assert row is not None
    return ServiceFacts(*row)


def read_tables(connection: Connection, name: str | None = None) -> list[TableOverview]:
    """All stream tables, or the one of that name, ordered by name."""
    statuses = read_statuses(connection, name)
    facts = {
        RelationName(schema, table): (StreamTableId(id_), failing_since, last)
        for id_, schema, table, failing_since, *last in connection.execute(
            load(_PACKAGE, "sql/table_facts.sql"), {"name": name}
        )
    }
    return [
        TableOverview(facts[status.name][0], status, facts[status.name][1], _last(facts[status.name][2]))
        for status in statuses
        # one that was created or dropped between the two statements is seen the next time
        if status.name in facts
    ]


def table_overview(dsn: str, name: str) -> TableOverview:
    """One stream table; raise if there is none of that name."""
    with open_installed(dsn) as connection:
        return read_tables(connection, check_known(connection, name))[0]


def read_recent(
    connection: Connection, limit: int, tables: Sequence[StreamTableId] | None = None
) -> dict[str, list[tuple[float, str]]]:
    """How long the last refreshes of each stream table took, and a letter for what each did, oldest first.

    Those that found nothing are left out; X is a failure.
    """
    values = {"limit": limit, "ids": None if tables is None else list(tables)}
    rows = connection.execute(load(_PACKAGE, "sql/recent_refreshes.sql"), values)
    return {name: list(zip(durations, letters, strict=True)) for name, durations, letters in rows}


def _last(values: Sequence[object]) -> LastRefresh | None:
    number, at, action, *rest = values
    if number is None:
        return None
    return LastRefresh(number, at, Action(action), *rest)  # type: ignore[arg-type]
