"""Keeps change buffers small: empties what all readers have processed, and releases unused sources."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection

ROTATE_BYTES: Final = 1 << 20
"""Retire an active buffer larger than this once the other one is empty; a window reads all of it."""
GROWN_BYTES: Final = 16 << 20
"""Index a buffer larger than this if somebody still needs it."""


def rotate(
    connection: Connection,
    relation: RelationId,
    *,
    min_bytes: int = ROTATE_BYTES,
    grown_bytes: int = GROWN_BYTES,
) -> bool:
    """Empty the retired buffer if all readers have processed it, and swap if the active one is large.

    A short transaction that waits for no lock. Returns True if the buffers were swapped.
    """
    with connection.transaction():
        row = connection.execute(
            "select pgtrickle_internal.rotate(%s, %s, %s)", (relation, min_bytes, grown_bytes)
        ).fetchone()
    return bool(row and row[0])


def sources_to_rotate(
    connection: Connection, sources: Collection[RelationId] | None = None, *, min_bytes: int = ROTATE_BYTES
) -> tuple[RelationId, ...]:
    """The given sources, or all, that have a buffer to empty or to retire, by the size of its file."""
    rows = connection.execute(
        "select s.source_relid::bigint from pgtrickle.pgt_sources s,"
        " format('pgtrickle_changes.changes_%%s', s.source_relid) buffer,"
        " to_regclass(format('%%s_%%s', buffer, s.active_buffer)) active,"
        " to_regclass(format('%%s_%%s', buffer, 1 - s.active_buffer)) retired"
        " where (%(sources)s::oid[] is null or s.source_relid = any (%(sources)s))"
        " and (pg_relation_size(active) >= %(size)s or pg_relation_size(retired) > 0) order by 1",
        {"sources": None if sources is None else list(sources), "size": min_bytes},
    )
    return tuple(RelationId(relid) for (relid,) in rows)


def release_unused(connection: Connection) -> int:
    """Stop capturing tables that no stream table reads. Returns how many; skips those that are busy."""
    unused = connection.execute(
        "select s.source_relid::bigint from pgtrickle.pgt_sources s where not exists (select"
        " from pgtrickle.pgt_dependencies d where d.source_relid = s.source_relid"
        " and d.source_type not in ('view', 'function'))"
        " and not exists (select from pgtrickle.pgt_remote_readers r where r.source_relid = s.source_relid)"
    ).fetchall()
    released = 0
    for (relid,) in unused:
        with connection.transaction():
            row = connection.execute("select pgtrickle_internal.release_source(%s)", (relid,)).fetchone()
        released += bool(row and row[0])
    return released
