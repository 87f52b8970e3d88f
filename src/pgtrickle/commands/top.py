"""Reads what all stream tables and sidecars are doing now, for a screen that is refreshed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pgtrickle.commands.connections import open_installed
from pgtrickle.commands.status import Sidecar, read_sidecars
from pgtrickle.model.errors import BadOption
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record, Records
from pgtrickle.model.stream_table import Action, RefreshMode, Status
from pgtrickle.model.table_state import StreamTableState, allowed_staleness, state_of
from pgtrickle.model.tier import Tier
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

if TYPE_CHECKING:
    from pandas import DataFrame

RATE_SECONDS: Final = 10.0
"""The time over which refreshes per second are averaged."""


@dataclass(frozen=True, slots=True, repr=False)
class TableActivity(Record):
    """What one stream table is doing.

    `staleness_seconds` is the age of the oldest change that it does not show yet, `allowed_seconds` the age
    from which on it counts as late, or None if nothing was promised. `refreshes_per_second` is the average of
    the last ten seconds. `problem` says what it waits for, or its last error if you may see it.
    """

    table_columns: ClassVar = (
        "name",
        "state",
        "staleness_seconds",
        "schedule",
        "refreshes_per_second",
        "last_refresh_at",
        "last_milliseconds",
    )

    name: RelationName
    state: StreamTableState
    staleness_seconds: float | None
    allowed_seconds: float | None
    schedule: str
    tier: Tier
    effective_refresh_mode: RefreshMode | None
    refreshes_per_second: float
    last_refresh_at: datetime | None
    last_action: Action | None
    last_milliseconds: float | None
    problem: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Activity(Record):
    """All stream tables and sidecars of a database at one moment. It prints as the table of its `tables`."""

    database: str
    at: datetime
    tables: Records[TableActivity]
    sidecars: Records[Sidecar]

    @property
    def refreshes_per_second(self) -> float:
        """Refreshes of all these stream tables, the average of the last ten seconds."""
        return sum(table.refreshes_per_second for table in self.tables)

    def count(self, state: StreamTableState) -> int:
        """How many stream tables are in a state."""
        return sum(table.state is state for table in self.tables)

    def __repr__(self) -> str:
        return repr(self.tables)

    def __str__(self) -> str:
        return repr(self.tables)

    def _repr_html_(self) -> str:
        return self.tables._repr_html_()

    def to_pandas(self) -> DataFrame:
        """The stream tables as a DataFrame."""
        return self.tables.to_pandas()


class Order(Enum):
    """What a list of stream tables is sorted by."""

    PROBLEMS = "problems"
    NAME = "name"
    STALENESS = "staleness"
    REFRESHES = "refreshes"
    DURATION = "duration"
    LAST = "last"


_KEYS: Final[dict[Order, Callable[[TableActivity], Any]]] = {
    Order.PROBLEMS: lambda table: (table.state.urgency, -(table.staleness_seconds or 0)),
    Order.NAME: lambda table: 0,
    Order.STALENESS: lambda table: -(table.staleness_seconds or 0),
    Order.REFRESHES: lambda table: -table.refreshes_per_second,
    Order.DURATION: lambda table: -(table.last_milliseconds or 0),
    Order.LAST: lambda table: -table.last_refresh_at.timestamp() if table.last_refresh_at else 0,
}


def top(dsn: str, sort: str = "problems", pattern: str | None = None) -> Activity:
    """What the stream tables of a database are doing now: problems first, or sorted otherwise."""
    order = _order(sort)
    with open_installed(dsn) as connection:
        return arrange(read_activity(connection), order, pattern or "")


def _order(text: str) -> Order:
    try:
        return Order(text.strip().lower())
    except ValueError:
        orders = ", ".join(order.value for order in Order)
        raise BadOption(f"stream tables cannot be sorted by {text}", hint=f"use one of: {orders}") from None


def read_activity(connection: Connection) -> Activity:
    """The same unsorted, for callers that poll on their own connection."""
    row = connection.execute("select current_database(), clock_timestamp()").fetchone()
    assert row is not None
    rows = connection.execute(load("pgtrickle.commands", "sql/activity.sql"), {"seconds": RATE_SECONDS})
    tables = [_table_activity(row) for row in rows]
    serving = [one for one in read_sidecars(connection) if one.is_alive]
    return Activity(row[0], row[1], Records(TableActivity, tables), Records(Sidecar, serving))


def arrange(activity: Activity, order: Order, pattern: str) -> Activity:
    """Only the stream tables whose name contains `pattern`, in this order; equal ones by name."""
    wanted = pattern.casefold()
    found = [table for table in activity.tables if wanted in str(table.name).casefold()]
    key = _KEYS[order]
    ordered = sorted(found, key=lambda table: (key(table), str(table.name)))
    return replace(activity, tables=Records(TableActivity, ordered))


def _table_activity(row: tuple[Any, ...]) -> TableActivity:
    schema, name, status, errors, is_populated, waits, staleness, schedule, seconds, tier, mode, *rest = row
    rate, refreshed_at, action, milliseconds, error = rest
    allowed = allowed_staleness(schedule, seconds, Tier(tier))
    state = state_of(
        status=Status(status),
        consecutive_errors=errors,
        is_populated=is_populated,
        waits=waits,
        staleness_seconds=staleness,
        allowed_seconds=allowed,
    )
    is_failing = state in (StreamTableState.FAILING, StreamTableState.SUSPENDED)
    return TableActivity(
        RelationName(schema, name),
        state,
        staleness if is_populated else None,
        allowed,
        schedule,
        Tier(tier),
        RefreshMode(mode) if mode else None,
        rate,
        refreshed_at,
        Action(action) if action else None,
        milliseconds,
        (error if is_failing else None) or waits,
    )
