"""Writes decoded change rows to the change buffers, in batches of bounded size."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.wal.images import CapturedSource, ChangeRow
from pgtrickle.changes.source_window import CHANGES
from pgtrickle.postgres.connection import Connection, DatabaseError, sql

HELD_BYTES: Final = 4 << 20
"""Rows are written to the buffers when they have this many bytes together."""
_SPECIAL: Final = re.compile(rb"[\\\b\f\n\r\t\v]")
_ESCAPES: Final = {
    b"\\": b"\\\\",
    b"\b": b"\\b",
    b"\f": b"\\f",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
    b"\v": b"\\v",
}
_TRANSIENT: Final = ("08", "25", "40", "53", "55", "57", "58", "XX")
"""Classes of errors that say nothing about a value: another attempt may succeed."""


@dataclass(slots=True)
class BufferRows:
    """Writes change rows to the buffers, in batches, inside the transaction of a round."""

    connection: Connection
    encoding: str
    rows: int = 0
    touched: dict[tuple[int, int], int] = field(default_factory=dict)
    """Transactions and the sources that they wrote to, and when they committed: microseconds since 2000."""
    _held: dict[CapturedSource, bytearray] = field(default_factory=dict)
    _markers: set[tuple[int, int, int]] = field(default_factory=set)
    _size: int = 0

    def add(self, change: ChangeRow, xid: int, committed_at: int) -> None:
        """Take a change row of a transaction, and write when there are many."""
        source = change.source
        self.touched[xid, source.id] = committed_at
        self.rows += 1
        if not change.weight:
            self._markers.add((xid, source.id, source.buffer))
            return
        values = [b"\\N" if value is None else escape(value) for value in change.values]
        line = b"\t".join((b"%d\t%d" % (xid, change.weight), *values))
        held = self._held.get(source)
        if held is None:
            held = self._held[source] = bytearray()
        held += line + b"\n"
        self._size += len(line)
        if self._size >= HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write everything. Rows that a buffer does not take become markers: their readers start over."""
        for source, lines in self._held.items():
            try:
                with self.connection.transaction():
                    self._copy(source, bytes(lines))
            except DatabaseError as error:
                if not _is_of_a_value(error):
                    raise
                xids = {int(line.split(b"\t", 1)[0]) for line in lines.splitlines() if line[:1].isdigit()}
                self._markers |= {(xid, source.id, source.buffer) for xid in xids}
        self._held, self._size = {}, 0
        for xid, source_id, buffer in self._markers:
            self.connection.execute(
                sql.SQL("insert into {} (xid, weight) values (%s::text::xid8, 0)").format(
                    sql.Identifier(CHANGES, f"changes_{source_id}_{buffer}")
                ),
                (str(xid),),
            )
        self._markers = set()

    def _copy(self, source: CapturedSource, lines: bytes) -> None:
        columns = ["xid", "weight", *(f"c{number}" for number, _ in source.columns)]
        statement = sql.SQL("copy {} ({}) from stdin (encoding {})").format(
            sql.Identifier(CHANGES, f"changes_{source.id}_{source.buffer}"),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Literal(self.encoding),
        )
        with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(lines)


def _is_of_a_value(error: DatabaseError) -> bool:
    """Whether a buffer does not take a value: PostgreSQL then says in which line it was.

    It can be out of range, too large for a page, or name something that was dropped after it was written.
    """
    state = error.sqlstate
    return state is not None and state[:2] not in _TRANSIENT and error.diag.context is not None


def escape(value: bytes) -> bytes:
    """A value in the text format of COPY."""
    if _SPECIAL.search(value) is None:
        return value
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], value)
