"""Repairs of stream tables, with evidence that only their owners can read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Final

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

KEPT_REPAIRS: Final = 100
KEPT_FOR: Final = timedelta(days=90)


class Cause(Enum):
    """How the wrong rows of a stream table were detected."""

    DIVERGED = "diverged"
    VERIFIED = "verified"


def note_repair(
    connection: Connection,
    table: StreamTableId,
    cause: Cause,
    reason: str,
    found_by: str,
    problems: Sequence[str] = (),
) -> None:
    """Store the evidence, and mark the stream table for a reload unless it is to stop. The caller commits.

    Every role may read `reason`; `problems` may quote rows.
    """
    connection.execute(
        "select pgtrickle_internal.note_repair(%s, %s, %s, %s, %s)",
        (table, cause.value, reason, found_by, list(problems)),
    )


def open_repairs(connection: Connection, table: StreamTableId) -> list[int]:
    """The repairs of a stream table that no load has completed yet."""
    rows = connection.execute(
        "select repair_id from pgtrickle.pgt_repairs where pgt_id = %s and repaired_at is null", (table,)
    ).fetchall()
    return [row[0] for row in rows]


def close_repairs(
    connection: Connection,
    repairs: Sequence[int],
    unexpected: Sequence[str] | None,
    missing: Sequence[str] | None,
) -> None:
    """Record that the load of this transaction completes them, and the rows in which the table differed."""
    connection.execute(
        "update pgtrickle.pgt_repairs set repaired_at = clock_timestamp(), unexpected = %s::text[],"
        " missing = %s::text[] where repair_id = any (%s)",
        (_as_list(unexpected), _as_list(missing), list(repairs)),
    )


def prune_repairs(connection: Connection) -> int:
    """Delete old evidence. Returns the number of repairs; `status` still counts them."""
    return connection.execute(
        load("pgtrickle.catalog", "sql/queries/prune_repairs.sql"),
        {"kept": KEPT_REPAIRS, "kept_for": KEPT_FOR},
    ).rowcount


def _as_list(rows: Sequence[str] | None) -> list[str] | None:
    return None if rows is None else list(rows)
