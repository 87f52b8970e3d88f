"""What went wrong with stream tables, written down where only their owners can read it."""

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
    """How it was found that a stream table does not hold the rows it should hold."""

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
    """Store the evidence, and have the stream table loaded anew unless it is to stop. The caller commits.

    Everybody may read `reason`; `problems` may quote rows.
    """
    connection.execute(
        "select pgtrickle_internal.note_repair(%s, %s, %s, %s, %s)",
        (table, cause.value, reason, found_by, list(problems)),
    )


def open_repairs(connection: Connection, table: StreamTableId) -> list[int]:
    """The repairs of a stream table that no load has ended yet."""
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
    """Note that the load of this transaction repairs them, and in which rows the table differed before."""
    connection.execute(
        "update pgtrickle.pgt_repairs set repaired_at = clock_timestamp(), unexpected = %s::text[],"
        " missing = %s::text[] where repair_id = any (%s)",
        (_listed(unexpected), _listed(missing), list(repairs)),
    )


def prune_repairs(connection: Connection) -> int:
    """Forget old evidence; how many repairs went. `status` counts them all the same."""
    return connection.execute(
        load("pgtrickle.catalog", "sql/queries/prune_repairs.sql"),
        {"kept": KEPT_REPAIRS, "kept_for": KEPT_FOR},
    ).rowcount


def _listed(rows: Sequence[str] | None) -> list[str] | None:
    return None if rows is None else list(rows)
