"""The tasks of maintenance: keep buffers small, triggers complete and history short."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from pgtrickle.capture.repair import capture_gaps, repair, retry_capture, waiting_sources
from pgtrickle.capture.rotate import release_unused, rotate, sources_to_rotate
from pgtrickle.catalog.alerts import prune_alerts
from pgtrickle.catalog.compiled import prune_compiled
from pgtrickle.catalog.dependencies import forget_dropped
from pgtrickle.catalog.feeds import prune_feeds
from pgtrickle.catalog.outcomes import prune_history
from pgtrickle.catalog.repairs import prune_repairs
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.caching.version import code_version


def rotate_buffers(connection: Connection, sources: Collection[RelationId] | None) -> set[RelationId]:
    """Rotate the buffers of these sources, or of all; returns those to check again soon."""
    found = sources_to_rotate(connection, sources)
    for relation in found:
        rotate(connection, relation)
    return set(found)


def tidy(connection: Connection) -> None:
    """Remove what belongs to dropped tables, and release sources that nobody reads."""
    forget_dropped(connection)
    release_unused(connection)
    connection.execute("select pgtrickle_internal.note_counter()")
    connection.execute("select pgtrickle_internal.drop_lost_readers()")
    prune_feeds(connection)
    with connection.transaction():
        prune_history(connection)
        prune_repairs(connection)
        prune_alerts(connection)
        prune_compiled(connection, code_version())


def repair_captures(connection: Connection) -> None:
    """Repair the capture of every source; stream tables over a repaired one are recomputed."""
    for source in capture_gaps(connection):
        # if the table is busy its readers wait, and the next round tries again
        with suppress(PgTrickleError):
            repair(connection, source)


def capture_waiting(connection: Connection) -> None:
    """Create the triggers that stream tables wait for, where a lock is available now."""
    for source in waiting_sources(connection):
        retry_capture(connection, source)
