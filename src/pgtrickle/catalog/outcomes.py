"""What becomes of a stream table: claims, and the results of refreshes written to the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pgtrickle.catalog.tables import some_stream_tables
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, RefreshMode, Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

MAX_CONSECUTIVE_ERRORS: Final = 3
FIRST_DELAY: Final = timedelta(seconds=1)
KEPT_REFRESHES: Final = 1000
KEPT_FOR: Final = timedelta(days=7)
_PACKAGE: Final = "pgtrickle.catalog"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did, for the catalog. `frontier` is that of tables, `upstream` of stream tables."""

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
    milliseconds: float = 0.0


def claim(connection: Connection, table: StreamTableId, *, wait: bool) -> StreamTable | None:
    """Hold a stream table until this transaction ends; None if another has it, or it is gone."""
    found = claim_all(connection, (table,), wait=wait)
    return found[0] if found else None


def claim_all(
    connection: Connection, tables: Sequence[StreamTableId], *, wait: bool
) -> tuple[StreamTable, ...]:
    """Hold stream tables until this transaction ends, without those that others have, or that are gone.

    The lock lets others ask for a refresh meanwhile, but not claim or alter it.
    """
    statement = load(_PACKAGE, "sql/claim_waiting.sql" if wait else "sql/claim.sql")
    held = [StreamTableId(row[0]) for row in connection.execute(statement, (list(tables),))]
    return some_stream_tables(connection, held) if held else ()


def commit_refresh(connection: Connection, table: StreamTableId, refreshed: Refreshed) -> None:
    """Write the result beside the rows, in the transaction that holds the claim."""
    commit_refreshes(connection, [(table, refreshed)])


def commit_refreshes(
    connection: Connection, all_refreshed: Sequence[tuple[StreamTableId, Refreshed]]
) -> None:
    """Write the results of several refreshes, in the transaction that holds their claims."""
    done = [refreshed for _, refreshed in all_refreshed]
    connection.execute(
        load(_PACKAGE, "sql/commit_refresh.sql"),
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
        },
    )


def record_failure(
    connection: Connection,
    table: StreamTableId,
    error: str,
    *,
    action: Action,
    started_at: datetime,
    reason: str = "",
    initiated_by: str = "scheduler",
    max_errors: int = MAX_CONSECUTIVE_ERRORS,
) -> Status | None:
    """Note a failure in a transaction of its own: wait longer each time, then suspend. None if it is gone."""
    values = {
        "id": table,
        "error": error,
        "action": action.value,
        "started_at": started_at,
        "reason": reason,
        "initiated_by": initiated_by,
        "max_errors": max_errors,
        "first_delay": FIRST_DELAY,
    }
    with connection.transaction():
        row = connection.execute(load(_PACKAGE, "sql/record_failure.sql"), values).fetchone()
    return Status(row[0]) if row else None


def set_compiled(connection: Connection, table: StreamTableId, mode: RefreshMode, reason: str | None) -> None:
    """Store what the compiler made of the query, and why not better; writes only what is new."""
    connection.execute(
        "update pgtrickle.pgt_stream_tables"
        " set effective_refresh_mode = %(mode)s, downgrade_reason = %(reason)s"
        " where pgt_id = %(id)s and (effective_refresh_mode, downgrade_reason)"
        " is distinct from (%(mode)s, %(reason)s)",
        {"id": table, "mode": mode.value, "reason": reason or None},
    )


def mark_active(connection: Connection, table: StreamTableId) -> None:
    """The stream table is in order again."""
    connection.execute(
        "update pgtrickle.pgt_stream_tables set status = 'ACTIVE', consecutive_errors = 0, last_error = null,"
        " retry_at = null where pgt_id = %s",
        (table,),
    )


def mark_error(connection: Connection, table: StreamTableId, error: str) -> None:
    """Only a person can help: no retry by itself. Whoever waits for a refresh is told."""
    with connection.transaction():
        connection.execute(
            "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = %s, retry_at = null"
            " where pgt_id = %s",
            (error, table),
        )
        connection.execute(
            "update pgtrickle.pgt_refresh_requests set answered_at = clock_timestamp(), error_message = %s"
            " where pgt_id = %s and answered_at is null",
            (error, table),
        )


def mark_reinit(connection: Connection, table: StreamTableId, reason: str) -> None:
    """The next refresh computes everything anew."""
    connection.execute(
        "update pgtrickle.pgt_stream_tables set needs_reinit = true, reinit_reason = %s where pgt_id = %s",
        (reason, table),
    )


def prune(connection: Connection) -> int:
    """Forget old history, answered requests and old generations; how many rows of history went."""
    connection.execute(
        "delete from pgtrickle.pgt_refresh_requests where answered_at < now() - interval '1 hour'"
    )
    connection.execute(
        "delete from pgtrickle.pgt_generation"
        " where id < (select max(id) - 1000 from pgtrickle.pgt_generation)"
    )
    return connection.execute(
        load(_PACKAGE, "sql/prune_history.sql"), {"kept": KEPT_REFRESHES, "kept_for": KEPT_FOR}
    ).rowcount
