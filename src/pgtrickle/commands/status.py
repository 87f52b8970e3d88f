"""Reads the status and history of stream tables, and the sidecars of a database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from pgtrickle.catalog.identity import installation
from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import Action, RefreshMode, Status
from pgtrickle.model.tier import Tier
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

NO_SIDECAR: Final = "no sidecar serves this database"
"""How `waits` begins if no sidecar is running."""


@dataclass(frozen=True, slots=True, repr=False)
class StreamTableStatus(Record):
    """The definition and current status of one stream table.

    `pending_changes` counts captured change rows that are not applied yet; an update counts as two.
    `last_error` is None for roles that cannot act as the owner. `waits` says what blocks its refreshes:
    a gate, a drained or copied database, a restart of Spark, or that no sidecar is running; or that the
    sidecar keeps to its share of the CPU, as `paced: 1.8 s`.
    `refresh_timeout` is in seconds: 0 is no limit, None is the default of the sidecar. `repairs` counts how
    often the stream table had wrong rows and was loaded again. `keep_changes` is how long the changes of its
    rows are kept; None if they are not.
    """

    table_columns: ClassVar = (
        "name",
        "status",
        "schedule",
        "effective_refresh_mode",
        "staleness_seconds",
        "pending_changes",
        "last_action",
        "last_error",
    )

    name: RelationName
    owner: str
    query: str
    sources: tuple[str, ...]
    schedule: str
    tier: Tier
    refresh_mode: RefreshMode
    effective_refresh_mode: RefreshMode | None
    downgrade_reason: str | None
    status: Status
    is_populated: bool
    data_timestamp: datetime | None
    staleness_seconds: float | None
    pending_changes: int | None
    last_refresh_at: datetime | None
    last_action: Action | None
    last_milliseconds: float | None
    consecutive_errors: int
    last_error: str | None
    retry_at: datetime | None
    waits: str | None
    refresh_timeout: float | None
    on_divergence: str
    repairs: int
    last_repair_at: datetime | None
    keep_changes: str | None


@dataclass(frozen=True, slots=True, repr=False)
class PastRefresh(Record):
    """One entry in the history of a stream table.

    `read_ms`, `compute_ms` and `apply_ms` are parts of `milliseconds`; None if they were not measured.
    """

    table_columns: ClassVar = (
        "name",
        "started_at",
        "action",
        "rows_inserted",
        "rows_deleted",
        "milliseconds",
        "read_ms",
        "compute_ms",
        "apply_ms",
        "reason",
        "error",
    )

    refresh_id: int
    name: RelationName
    action: Action
    status: str
    started_at: datetime
    rows_inserted: int
    rows_deleted: int
    milliseconds: float
    reason: str | None
    error: str | None
    initiated_by: str
    read_ms: float | None = None
    compute_ms: float | None = None
    apply_ms: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Sidecar(Record):
    """One sidecar process, as of its last report."""

    table_columns: ClassVar = (
        "host",
        "process",
        "version",
        "is_alive",
        "workers",
        "busy",
        "queued",
        "behind",
        "refreshes",
        "failures",
    )

    sidecar_id: str
    host: str
    process: int
    version: str
    started_at: datetime
    seen_at: datetime
    is_alive: bool
    workers: int
    busy: int
    queued: int
    behind: int | None
    tick_milliseconds: float | None
    slowest_tick_milliseconds: float | None
    refreshes: int
    failures: int
    vitals: dict[str, Any]


def is_copy(dsn: str) -> bool:
    """Whether the catalog comes from a dump, a clone or an upgrade and has not been repaired since."""
    with open_installed(dsn) as connection:
        return installation(connection).is_copy


def sidecars(dsn: str) -> list[Sidecar]:
    """The sidecars of the database, oldest first."""
    with open_installed(dsn) as connection:
        return read_sidecars(connection)


def read_sidecars(connection: Connection) -> list[Sidecar]:
    """The same on the caller's connection."""
    rows = connection.execute(
        "select sidecar_id::text, host, process, version, started_at, seen_at, is_alive, workers, busy,"
        " queued, behind, tick_ms, slowest_tick_ms, refreshes, failures, vitals"
        " from pgtrickle.server_worker_inventory where is_here order by started_at"
    )
    return [Sidecar(*row) for row in rows]


def table_statuses(dsn: str) -> list[StreamTableStatus]:
    """The status of all stream tables, ordered by name."""
    with open_installed(dsn) as connection:
        return read_table_statuses(connection)


def read_table_statuses(connection: Connection) -> list[StreamTableStatus]:
    """The status of all stream tables, for callers that poll on their own connection."""
    return read_statuses(connection, None)


def table_status(dsn: str, name: str) -> StreamTableStatus:
    """The status of one stream table."""
    with open_installed(dsn) as connection:
        return read_table_status(connection, name)


def read_table_status(connection: Connection, name: str) -> StreamTableStatus:
    """The same on the caller's connection."""
    return read_statuses(connection, check_known(connection, name))[0]


def history(dsn: str, name: str, limit: int = 20) -> list[PastRefresh]:
    """The latest refreshes of a stream table, newest first."""
    with open_installed(dsn) as connection:
        known = {"name": check_known(connection, name), "limit": limit}
        rows = connection.execute(load("pgtrickle.commands", "sql/history.sql"), known)
        return [past_refresh(row) for row in rows]


def read_statuses(connection: Connection, name: str | None) -> list[StreamTableStatus]:
    """The status of one stream table, or of all."""
    rows = connection.execute(load("pgtrickle.commands", "sql/statuses.sql"), {"name": name})
    return [_table_status(row) for row in rows]


def _table_status(row: tuple[Any, ...]) -> StreamTableStatus:
    schema, name, owner, query, sources, schedule, tier, mode, effective, reason, status, *rest = row
    is_populated, data_at, staleness, pending, refreshed_at, action, milliseconds, errors, error, *more = rest
    retry, waits, refresh_timeout, on_divergence, repairs, last_repair_at, keep_changes = more
    return StreamTableStatus(
        RelationName(schema, name),
        owner,
        query,
        tuple(sources),
        schedule or "manual",
        Tier(tier),
        RefreshMode(mode),
        RefreshMode(effective) if effective else None,
        reason,
        Status(status),
        is_populated,
        data_at,
        staleness,
        pending,
        refreshed_at,
        Action(action) if action else None,
        milliseconds,
        errors,
        error,
        retry,
        waits,
        refresh_timeout,
        on_divergence,
        repairs,
        last_repair_at,
        keep_changes,
    )


def past_refresh(row: tuple[Any, ...]) -> PastRefresh:
    """One row of history.sql or timeline.sql."""
    number, schema, name, action, *rest = row
    return PastRefresh(number, RelationName(schema, name), Action(action), *rest)
