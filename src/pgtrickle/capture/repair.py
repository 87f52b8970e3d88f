"""Detects and repairs incomplete capture, and marks the readers of the source for a reload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError, to_refusal
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.rows import rows_as


@dataclass(frozen=True, slots=True)
class MissingTrigger:
    """A capture trigger that is missing or does not fire; changes of its table may have been missed."""

    source: RelationId
    table: str
    trigger: str
    is_disabled: bool


def missing_triggers(connection: Connection) -> tuple[MissingTrigger, ...]:
    """Every capture trigger that should fire and does not."""
    result = connection.execute(
        'select source_oid::bigint as source, table_name as "table", trigger_name as trigger,'
        " is_present as is_disabled from pgtrickle.trigger_inventory() where not is_present or not is_enabled"
    )
    return rows_as(MissingTrigger, result)


def capture_gaps(connection: Connection) -> dict[RelationId, str]:
    """The sources whose capture is incomplete, each with the reason."""
    rows = connection.execute("select source::bigint, gap from pgtrickle_internal.capture_gaps() order by 1")
    return {RelationId(source): gap for source, gap in rows}


def repair(connection: Connection, source: RelationId) -> None:
    """Repair the capture of a source, in a short transaction. Raises Busy if the table is busy.

    Changes may have been missed, so the same transaction marks the stream tables that read the source for a
    reload. If the table is busy they wait, and the sidecar retries.
    """
    try:
        with connection.transaction():
            row = connection.execute("select pgtrickle_internal.repair_source(%s)", (source,)).fetchone()
    except DatabaseError as error:
        if is_contention(error):
            refusal = to_refusal(error)
            raise Busy(refusal.message, hint=refusal.hint) from error
        raise to_refusal(error) from error
    if row and row[0] is not None:
        raise Busy(f"the capture of a source cannot be repaired now, because of {row[0]}")


def ensure_parts(connection: Connection) -> None:
    """Create what all trigger functions use, if it was removed."""
    with connection.transaction():
        connection.execute("select pgtrickle_internal.create_parts() where pgtrickle_internal.lacks_parts()")
        connection.execute("select pgtrickle_internal.create_state()")


def waiting_sources(connection: Connection) -> tuple[RelationId, ...]:
    """The sources whose triggers stream tables wait for, and whose next attempt is due."""
    rows = connection.execute(
        "select w.source_relid::bigint from pgtrickle.pgt_waiting w"
        " group by w.source_relid having min(w.retry_at) <= clock_timestamp() order by min(w.retry_at)"
    )
    return tuple(RelationId(source) for (source,) in rows)


def retry_capture(connection: Connection, source: RelationId) -> str | None:
    """Retry to capture a source for the waiting stream tables. Returns what blocks it, or None."""
    with connection.transaction():
        row = connection.execute("select pgtrickle_internal.retry_capture(%s)", (source,)).fetchone()
    return row[0] if row else None


def sources_waited_for(connection: Connection, tables: Sequence[StreamTableId]) -> tuple[RelationId, ...]:
    """The sources whose triggers these stream tables wait for."""
    rows = connection.execute(
        "select distinct w.source_relid::bigint from pgtrickle.pgt_waiting w where w.pgt_id = any (%s)",
        (list(tables),),
    ).fetchall()
    connection.commit()
    return tuple(RelationId(source) for (source,) in rows)


def captured_sources(connection: Connection, tables: Sequence[StreamTableId]) -> tuple[RelationId, ...]:
    """The sources of these stream tables that have triggers."""
    rows = connection.execute(
        "select distinct d.source_relid::bigint from pgtrickle.pgt_dependencies d"
        " where d.pgt_id = any (%s) and d.source_type in ('table', 'stream_table')",
        (list(tables),),
    ).fetchall()
    connection.commit()
    return tuple(RelationId(source) for (source,) in rows)
