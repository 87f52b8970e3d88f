"""Triggers that should be there and are not: on partitions that came later, or switched off by hand."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, refused


@dataclass(frozen=True, slots=True)
class MissingTrigger:
    """A capture trigger that is not there, or does not fire; changes of its table may have been missed."""

    source: RelationId
    table: str
    trigger: str
    is_disabled: bool


def missing_triggers(connection: Connection) -> tuple[MissingTrigger, ...]:
    """Every capture trigger that should fire and does not."""
    rows = connection.execute(
        "select source_oid::bigint, table_name, trigger_name, is_present from pgtrickle.trigger_inventory()"
        " where not is_present or not is_enabled"
    )
    return tuple(
        MissingTrigger(RelationId(source), table, trigger, is_disabled=is_present)
        for source, table, trigger, is_present in rows
    )


def repair(connection: Connection, source: RelationId) -> None:
    """Create the triggers a source lacks, in a short transaction; Busy if the table is.

    What was missed before stays missed: its stream tables are to be computed anew afterwards.
    """
    try:
        with connection.transaction():
            connection.execute("select pgtrickle.repair_source(%s)", (source,))
    except DatabaseError as error:
        if error.sqlstate == Busy.sqlstate:
            refusal = refused(error)
            raise Busy(refusal.message, hint=refusal.hint) from error
        raise refused(error) from error
