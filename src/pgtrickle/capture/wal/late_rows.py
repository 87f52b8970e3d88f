"""Change rows that were decoded after a refresh took its snapshot, copied to where that snapshot sees them.

A snapshot does not see rows that are inserted later. Rows that COPY FREEZE writes into a table that the same
transaction has emptied are an exception: every snapshot sees them, also those that Spark's tasks import.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from tempfile import SpooledTemporaryFile
from typing import Final

from pgtrickle.changes.source_window import CHANGES, Start, buffers, unseen_by
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, set_locally, sql
from pgtrickle.postgres.settings import EXACT

HELD_BYTES: Final = 16 << 20
"""Larger windows go through a temporary file."""
MOST_WINDOWS: Final = 64
"""How many refreshes can use windows of one source at the same time."""


def late_sources(
    connection: Connection, sources: Collection[RelationId], snapshot: Frontier
) -> frozenset[RelationId]:
    """The sources that have rows which were stored after a snapshot was taken."""
    rows = connection.execute(
        "select distinct d.source_relid::bigint from pgtrickle.pgt_decoded d"
        " where d.source_relid = any (%(sources)s::oid[])"
        " and d.decoded_by >= pg_snapshot_xmin(%(seen)s::pg_snapshot)"
        " and not pg_visible_in_snapshot(d.decoded_by, %(seen)s::pg_snapshot)",
        {"sources": list(sources), "seen": str(snapshot)},
    )
    return frozenset(RelationId(source) for (source,) in rows)


def lease_window(connection: Connection, source: RelationId) -> int | None:
    """Reserve a window table of a source until the transaction ends; None if all are in use."""
    row = connection.execute(
        "select n from generate_series(1, %(most)s) n where pg_try_advisory_xact_lock("
        "pgtrickle_internal.wal_lock() + n, (%(source)s::bigint - 2147483648)::integer) limit 1",
        {"most": MOST_WINDOWS, "source": source},
    ).fetchone()
    return None if row is None else int(row[0])


def copy_to_window(
    connection: Connection, starts: Sequence[Start], until: Frontier, number: int
) -> RelationName:
    """Fill a window table with the rows that `until` sees and one of the frontiers does not."""
    source = starts[0][0]
    unseen = sql.SQL(" or ").join(sql.SQL("({})").format(unseen_by(frontier)) for _, frontier in starts)
    with connection.transaction(), SpooledTemporaryFile(HELD_BYTES) as rows:
        # it is needed by this refresh only, so it need not survive a crash
        connection.execute("set local synchronous_commit = off")
        # as text: not every type has a binary form
        set_locally(connection, EXACT)
        columns = _columns(connection, source)
        query = sql.SQL(" union all ").join(
            sql.SQL("select {} from {} where ({}) and pg_visible_in_snapshot(xid, {}::pg_snapshot)").format(
                columns, sql.Identifier(b.schema, b.name), unseen, sql.Literal(str(until))
            )
            for b in buffers(source)
        )
        with (
            connection.cursor() as cursor,
            cursor.copy(sql.SQL("copy ({}) to stdout").format(query)) as out,
        ):
            for block in out:
                rows.write(block)
        rows.seek(0)
        row = connection.execute(
            "select pgtrickle_internal.fit_window(%s::oid, %s)", (source, number)
        ).fetchone()
        assert row is not None
        window = RelationName(CHANGES, row[0])
        statement = sql.SQL("copy {} ({}) from stdin (freeze)").format(
            sql.Identifier(window.schema, window.name), columns
        )
        with connection.cursor() as cursor, cursor.copy(statement) as into:
            while block := rows.read(1 << 16):
                into.write(block)
    return window


def _columns(connection: Connection, source: RelationId) -> sql.Composed:
    (first, _) = buffers(source)
    names = connection.execute(
        "select a.attname from pg_attribute a where a.attrelid = to_regclass(%s) and a.attnum > 0"
        " and not a.attisdropped order by a.attnum",
        (f"{first.schema}.{first.name}",),
    )
    return sql.SQL(", ").join(sql.Identifier(name) for (name,) in names)
