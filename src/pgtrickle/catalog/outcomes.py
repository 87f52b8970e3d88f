"""Claims of stream tables, and the results of refreshes in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pgtrickle.catalog.alerts import alert
from pgtrickle.catalog.identity import Installation
from pgtrickle.catalog.tables import some_stream_tables
from pgtrickle.model.errors import Drained, SourceGated, WaitsForTriggers
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, RefreshMode, Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import row_as, rows_as
from pgtrickle.postgres.statements import load

KEPT_REFRESHES: Final = 1000
KEPT_FOR: Final = timedelta(days=7)
_PACKAGE: Final = "pgtrickle.catalog"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result of a refresh. `frontier` is the position in tables, `upstream` the one in stream tables."""

    action: Action
    started_at: datetime
    data_timestamp: datetime
    frontier: Frontier | None
    upstream: Frontier | None
    rows_inserted: int = 0
    rows_deleted: int = 0
    delta_rows: int | None = None
    reason: str = ""
    initiated_by: str = "scheduler"
    change_rows: int | None = None
    strategy: str | None = None
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredRefresh:
    """What an earlier refresh cost. `is_new_start` means that it loaded the whole table."""

    strategy: str
    change_rows: int
    milliseconds: float
    ended_at: float
    is_new_start: bool


@dataclass(frozen=True, slots=True)
class _Claim:
    """Whether the refresh of a stream table may start: `gate` and `triggers` say what it waits for."""

    id: StreamTableId
    installation: str
    may_start: bool
    gate: str | None
    triggers: str | None


def claim(
    connection: Connection,
    table: StreamTableId,
    *,
    wait: bool,
    check: Callable[[Installation], None] = Installation.check,
) -> StreamTable | None:
    """Lock a stream table until this transaction ends; None if another session holds it or it was dropped."""
    found = claim_all(connection, (table,), wait=wait, check=check)
    return found[0] if found else None


def claim_all(
    connection: Connection,
    tables: Sequence[StreamTableId],
    *,
    wait: bool,
    check: Callable[[Installation], None] = Installation.check,
) -> tuple[StreamTable, ...]:
    """Lock stream tables until this transaction ends, except those that others hold or that were dropped.

    While it is held, other sessions can request a refresh, but not claim or alter the table. Raises if the
    database is drained, if a source is gated or waits for triggers, or if `check` refuses the installation,
    which the caller may see for the first time here.
    """
    statement = load(_PACKAGE, "sql/queries/claim_waiting.sql" if wait else "sql/queries/claim.sql")
    claims = rows_as(_Claim, connection.execute(statement, (list(tables),)))
    if not claims:
        return ()
    check(Installation.parse(claims[0].installation))
    found = some_stream_tables(connection, [claim.id for claim in claims])
    obstacles = {claim.id: claim for claim in claims}
    for table in found:
        _check_startable(table, obstacles[table.id])
    return found


def check_startable(connection: Connection, table: StreamTable) -> None:
    """Raise if a refresh of the stream table cannot start until someone acts."""
    result = connection.execute(
        "select %(id)s::bigint as id, pgtrickle_internal.installation() as installation,"
        " not exists (select from pgtrickle.pgt_drain) as may_start,"
        " pgtrickle_internal.gate_before(%(id)s) as gate, null as triggers",
        {"id": table.id},
    )
    claim = row_as(_Claim, result)
    Installation.parse(claim.installation).check()
    _check_startable(table, claim)


def _check_startable(found: StreamTable, claim: _Claim) -> None:
    if not claim.may_start:
        raise Drained(
            f"{found.name} is not refreshed: the database is drained", hint="run: pgtrickle undrain"
        )
    if claim.gate is not None:
        raise SourceGated(
            f"{found.name} is not refreshed: {claim.gate}", hint="pgtrickle ungate opens the gate"
        )
    if claim.triggers is not None:
        raise WaitsForTriggers(
            f"{found.name} is not refreshed: {claim.triggers}",
            hint="it goes on as soon as they have been created",
        )


def commit_refresh(connection: Connection, table: StreamTableId, refreshed: Refreshed) -> None:
    """Write the result in the transaction that wrote the rows and holds the claim."""
    commit_refreshes(connection, [(table, refreshed)])


def commit_refreshes(
    connection: Connection, all_refreshed: Sequence[tuple[StreamTableId, Refreshed]]
) -> None:
    """Write the results of several refreshes, in the transaction that holds their claims."""
    done = [refreshed for _, refreshed in all_refreshed]
    connection.execute(
        load(_PACKAGE, "sql/queries/commit_refresh.sql"),
        {
            "ids": [table for table, _ in all_refreshed],
            "actions": [r.action.value for r in done],
            "started_at": [r.started_at for r in done],
            "milliseconds": [r.milliseconds for r in done],
            "data_timestamps": [r.data_timestamp for r in done],
            "frontiers": [str(r.frontier) if r.frontier else None for r in done],
            "upstreams": [str(r.upstream) if r.upstream else None for r in done],
            "rows_inserted": [r.rows_inserted for r in done],
            "rows_deleted": [r.rows_deleted for r in done],
            "delta_rows": [r.delta_rows for r in done],
            "reasons": [r.reason for r in done],
            "initiators": [r.initiated_by for r in done],
            "change_rows": [r.change_rows for r in done],
            "strategies": [r.strategy for r in done],
        },
    )


def measured_refreshes(
    connection: Connection, table: StreamTableId, limit: int
) -> tuple[MeasuredRefresh, ...]:
    """The latest refreshes of a stream table whose cost was measured, oldest first."""
    statement = load(_PACKAGE, "sql/queries/measured_refreshes.sql")
    return rows_as(MeasuredRefresh, connection.execute(statement, {"id": table, "limit": limit}))


def record_failure(
    connection: Connection,
    table: StreamTableId,
    error: str,
    *,
    action: Action,
    started_at: datetime,
    reason: str = "",
    initiated_by: str = "scheduler",
    delays: Sequence[timedelta],
) -> Status | None:
    """Record a failure in a separate transaction. Returns None if the stream table was dropped.

    The n-th consecutive failure is retried after the n-th of `delays`; one more suspends, with an alert.
    """
    values = {
        "id": table,
        "error": error,
        "action": action.value,
        "started_at": started_at,
        "reason": reason,
        "initiated_by": initiated_by,
        "delays": list(delays),
    }
    with connection.transaction():
        row = connection.execute(load(_PACKAGE, "sql/queries/record_failure.sql"), values).fetchone()
        if row is None:
            return None
        status, errors = Status(row[0]), row[1]
        if status is Status.SUSPENDED:
            alert(connection, "auto_suspended", pgt_id=table, consecutive_errors=errors)
    return status


def set_compiled(
    connection: Connection,
    table: StreamTableId,
    mode: RefreshMode,
    reason: str | None,
    *,
    follows_clock: bool,
) -> None:
    """Store the mode that the compiler chose and why it is not the requested one, if they have changed."""
    connection.execute(
        "update pgtrickle.pgt_stream_tables"
        " set effective_refresh_mode = %(mode)s, downgrade_reason = %(reason)s,"
        " follows_clock = %(follows_clock)s"
        " where pgt_id = %(id)s and (effective_refresh_mode, downgrade_reason, follows_clock)"
        " is distinct from (%(mode)s, %(reason)s, %(follows_clock)s)",
        {"id": table, "mode": mode.value, "reason": reason or None, "follows_clock": follows_clock},
    )


def mark_error(
    connection: Connection, table: StreamTableId, error: str, *, initiated_by: str = "scheduler"
) -> None:
    """Mark a failure that retries cannot fix. Records it in the history, and answers waiting requests."""
    with connection.transaction():
        connection.execute(
            "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = %s, retry_at = null"
            " where pgt_id = %s",
            (error, table),
        )
        connection.execute(
            "insert into pgtrickle.pgt_refresh_history"
            " (pgt_id, start_time, end_time, action, status, duration_ms, error_message, initiated_by)"
            " select pgt_id, clock_timestamp(), clock_timestamp(), 'REINITIALIZE', 'FAILED', 0, %s, %s"
            " from pgtrickle.pgt_stream_tables where pgt_id = %s",
            (error, initiated_by, table),
        )
        connection.execute(
            "update pgtrickle.pgt_refresh_requests set answered_at = clock_timestamp(), error_message = %s"
            " where pgt_id = %s and answered_at is null",
            (error, table),
        )


def mark_reinit(connection: Connection, table: StreamTableId, reason: str) -> None:
    """Have the next refresh recompute the whole table."""
    marked = connection.execute(
        "update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = %(reason)s"
        " from pgtrickle.pgt_stream_tables before"
        " where s.pgt_id = %(id)s and before.pgt_id = s.pgt_id returning before.needs_reinit",
        {"id": table, "reason": reason},
    ).fetchone()
    if marked == (False,):
        alert(connection, "reinitialize_needed", pgt_id=table, reason=reason)


def prune_history(connection: Connection) -> int:
    """Delete old history, answered requests and old generations. Returns the deleted rows of history."""
    connection.execute(
        "delete from pgtrickle.pgt_refresh_requests where answered_at < now() - interval '1 hour'"
    )
    connection.execute("delete from pgtrickle.pgt_generation where noted_at < now() - interval '1 hour'")
    return connection.execute(
        load(_PACKAGE, "sql/queries/prune_history.sql"), {"kept": KEPT_REFRESHES, "kept_for": KEPT_FOR}
    ).rowcount
