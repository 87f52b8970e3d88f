"""What keeps a database in order between refreshes: small buffers, complete triggers, short history."""

from __future__ import annotations

from collections.abc import Collection

from pgtrickle.capture.repair import missing_triggers, repair
from pgtrickle.capture.rotate import release_unused, rotate, worth_rotating
from pgtrickle.catalog.compiled import prune_compiled
from pgtrickle.catalog.dependencies import forget_dropped
from pgtrickle.catalog.outcomes import mark_reinit, prune
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.caching.version import code_version


def rotate_buffers(connection: Connection, sources: Collection[RelationId] | None) -> set[RelationId]:
    """Empty what all have read of these sources, or of all; which of them are to be looked at again."""
    found = worth_rotating(connection, sources)
    for relation in found:
        rotate(connection, relation)
    return set(found)


def tidy(connection: Connection) -> None:
    """Forget what is gone, release what nobody reads, and mend triggers that are missing."""
    forget_dropped(connection)
    release_unused(connection)
    for trigger in missing_triggers(connection):
        try:
            repair(connection, trigger.source)
        except PgTrickleError:
            # the table is busy or no longer ours; the next round tries again
            continue
        what = "off" if trigger.is_disabled else "missing"
        for table in _readers(connection, trigger.source):
            mark_reinit(connection, table, f"trigger {trigger.trigger} of {trigger.table} was {what}")
    with connection.transaction():
        prune(connection)
        prune_compiled(connection, code_version())


def _readers(connection: Connection, source: RelationId) -> list[StreamTableId]:
    rows = connection.execute(
        "select distinct pgt_id from pgtrickle.pgt_dependencies"
        " where source_relid = %s and source_type not in ('view', 'function')",
        (source,),
    ).fetchall()
    return [StreamTableId(row[0]) for row in rows]
