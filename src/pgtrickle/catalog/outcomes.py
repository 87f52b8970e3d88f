"""The results of refreshes in the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pgtrickle.catalog.alerts import alert
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.phases import PhaseTimes
from pgtrickle.model.stream_table import Action, RefreshMode, Status, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import rows_as
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
    times: PhaseTimes | None = None
    state_is_behind: bool | None = None
    """Whether the state is older than the rows from now on; None leaves it as it was."""


@dataclass(frozen=True, slots=True)
class MeasuredRefresh:
    """What an earlier refresh cost. `is_new_start` means that it loaded the whole table."""

    strategy: str
    change_rows: int
    milliseconds: float
    ended_at: float
    is_new_start: bool


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
            "read_ms": [r.times.read_ms if r.times else None for r in done],
            "compute_ms": [r.times.compute_ms if r.times else None for r in done],
            "apply_ms": [r.times.apply_ms if r.times else None for r in done],
            "states_behind": [r.state_is_behind for r in done],
        },
    )


def record_attached(read: Connection, write: Connection, tables: Sequence[StreamTableId]) -> None:
    """Record which points of attached databases stream tables show, as of the snapshot of `read`."""
    rows = read.execute(
        "select distinct on (d.pgt_id, t.alias) d.pgt_id, t.alias, t.frontier::text, t.position::text,"
        " t.followed_at"
        " from pgtrickle.pgt_dependencies d join pgtrickle.pgt_attached_tables t"
        " on t.source_relid = d.source_relid where d.pgt_id = any (%s) "
        " and num_nonnulls(t.frontier, t.position) > 0"
        " order by d.pgt_id, t.alias, t.followed_at",
        (list(tables),),
    ).fetchall()
    ids, aliases, frontiers, positions, times = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    write.execute(
        "with shown as (select * from unnest(%s::bigint[], %s::text[], %s::pg_snapshot[], %s::pg_lsn[],"
        " %s::timestamptz[]) f(pgt_id, alias, frontier, position, followed_at)),"
        " gone as (delete from pgtrickle.pgt_attached_frontiers f where f.pgt_id = any (%s)"
        " and (f.pgt_id, f.alias) not in (select s.pgt_id, s.alias from shown s))"
        " insert into pgtrickle.pgt_attached_frontiers (pgt_id, alias, frontier, position, followed_at)"
        " select * from shown on conflict (pgt_id, alias) do update"
        " set frontier = excluded.frontier, position = excluded.position, followed_at = excluded.followed_at",
        (list(ids), list(aliases), list(frontiers), list(positions), list(times), list(tables)),
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
    connection: Connection,
    table: StreamTableId,
    error: str,
    *,
    started_at: datetime | None = None,
    initiated_by: str = "scheduler",
) -> None:
    """Record a refusal that retries cannot fix, and answer the requests that wait.

    It counts as a failure and is in the history, although no refresh began. A suspended stream table stays
    suspended.
    """
    with connection.transaction():
        connection.execute(
            load(_PACKAGE, "sql/queries/mark_error.sql"),
            {"id": table, "error": error, "started_at": started_at, "initiated_by": initiated_by},
        )
        connection.execute(
            "update pgtrickle.pgt_refresh_requests set answered_at = clock_timestamp(), error_message = %s"
            " where pgt_id = %s and kind = 'refresh' and answered_at is null",
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


def revert_append_only(connection: Connection, table: StreamTableId) -> None:
    """Switch off `append_only`, because a refresh removed rows, and send the alert."""
    connection.execute(
        "update pgtrickle.pgt_stream_tables set append_only = false where pgt_id = %s", (table,)
    )
    alert(connection, "append_only_reverted", pgt_id=table)


def prune_history(connection: Connection) -> int:
    """Delete old history, answered requests and old generations. Returns the deleted rows of history."""
    connection.execute(
        # the answer to a preview has rows, so it is kept no longer than its reader needs
        "delete from pgtrickle.pgt_refresh_requests where answered_at"
        " < now() - case kind when 'preview' then interval '1 minute' else interval '1 hour' end"
    )
    connection.execute("delete from pgtrickle.pgt_generation where noted_at < now() - interval '1 hour'")
    return connection.execute(
        load(_PACKAGE, "sql/queries/prune_history.sql"), {"kept": KEPT_REFRESHES, "kept_for": KEPT_FOR}
    ).rowcount
