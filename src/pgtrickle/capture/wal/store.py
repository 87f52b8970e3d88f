"""Decodes what the slot has, and stores it in the change buffers.

One session decodes at a time. It stores the changes of whole transactions and the position behind them in one
transaction of its own, and the slot is only advanced to a position that is stored. After a crash, the same
transactions are decoded again, and those before the stored position are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from pgtrickle.capture.wal.buffer_rows import BufferRows
from pgtrickle.capture.wal.images import CapturedSource, ChangeRow, Column, Images
from pgtrickle.capture.wal.pgoutput import (
    Begin,
    Delete,
    Insert,
    Message,
    Note,
    Relation,
    Truncate,
    Update,
    full_xid,
)
from pgtrickle.capture.wal.reader import LogReader
from pgtrickle.capture.wal.slot import Lsn, SlotLost
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

ROUND_MESSAGES: Final = 100_000
"""A round ends with the first transaction that reaches this many messages."""
QUIET_BYTES: Final = 1 << 20
"""A position is stored without a change if this much log was read. Storing it writes log, too."""
LOCK_WAIT: Final = "60s"
REQUEST: Final = Note(b"pgtrickle", b"store")
"""Written by a session that waits for the position, to the session that reads the slot."""


@dataclass(frozen=True, slots=True)
class Round:
    """The position that a round has reached, the sources that changed, and whether more is left."""

    position: Lsn
    sources: frozenset[RelationId] = frozenset()
    rows: int = 0
    has_more: bool = False
    is_awaited: bool = False
    """Whether another session waits until the position is stored."""


def decode_round(connection: Connection, reader: LogReader, known: Lsn, most: int = ROUND_MESSAGES) -> Round:
    """Decode from the stored position to the end of the flushed log, in a transaction of its own.

    `known` is a position up to which this process has decoded: if the log ends there, nothing is done.
    Raises SlotLost if changes are missing.
    """
    (flushed,) = only(connection, "select pg_current_wal_flush_lsn()::text")
    if Lsn.parse(flushed) <= known:
        return Round(known)
    with connection.transaction():
        begin = load("pgtrickle.capture", "sql/queries/begin_round.sql")
        row = connection.execute(begin, {"patience": LOCK_WAIT}).fetchone()
        assert row is not None
        # the end comes first: who has committed before it wrote under a capture that the next statements see
        end = Lsn.parse(row[-1])
        server = _state(connection)
        stored, sources = server.stored, _sources(connection)
        found = _decode(connection, reader, sources, server, end, most)
        is_ending = any(source.until is not None and source.until <= found.position for source in sources)
        is_far = found.position - stored >= QUIET_BYTES
        if found.rows or is_ending or is_far or found.has_more or found.is_awaited:
            _store_position(connection, stored, found.position)
        return found


def _decode(
    connection: Connection,
    reader: LogReader,
    sources: tuple[CapturedSource, ...],
    server: _ServerState,
    end: Lsn,
    most: int,
) -> Round:
    if not sources:
        return Round(end)
    rows, images = BufferRows(connection, server.encoding), Images(sources)
    stored, count = server.stored, 0
    transaction: Begin | None = None
    xid, committed_at, is_awaited = 0, 0, False
    for message in reader.read(end, most):
        count += 1
        if isinstance(message, Begin):
            transaction = message if stored <= message.commit_lsn < end else None
            xid = full_xid(message.xid, server.next_xid)
            committed_at = message.commit_time
        elif isinstance(message, Relation):
            images.describe(message)
        elif isinstance(message, Note):
            is_awaited |= message == REQUEST
        elif transaction is not None and message is not None:
            for change in _changes(images, message, transaction.commit_lsn):
                rows.add(change, xid, committed_at)
    rows.flush()
    position = max(stored, reader.reached)
    has_more = count >= most and position < end
    _note_touched(connection, rows.touched)
    return Round(
        position,
        frozenset(RelationId(source) for _, source in rows.touched),
        rows.rows,
        has_more,
        is_awaited,
    )


def _changes(images: Images, message: Message, commit_lsn: int) -> Iterable[ChangeRow]:
    match message:
        case Insert():
            return images.insert(message, commit_lsn)
        case Update():
            return images.update(message, commit_lsn)
        case Delete():
            return images.delete(message, commit_lsn)
        case Truncate(relations):
            return images.truncate(relations, commit_lsn)
    return ()


def _sources(connection: Connection) -> tuple[CapturedSource, ...]:
    rows = connection.execute("select * from pgtrickle_internal.decoded_sources()").fetchall()
    return tuple(_source(*row) for row in rows)


def _source(
    source: int,
    buffer: int,
    since: str,
    until: str | None,
    numbers: list[int],
    names: list[bytes],
    trees: Any,
) -> CapturedSource:
    return CapturedSource(
        id=source,
        buffer=buffer,
        columns=tuple(zip(numbers, map(bytes, names), strict=True)),
        trees={
            int(relation): tuple(Column(bytes.fromhex(name), kind) for name, kind in columns or ())
            for relation, columns in trees.items()
        },
        since=Lsn.parse(since),
        until=None if until is None else Lsn.parse(until),
    )


def _note_touched(connection: Connection, touched: dict[tuple[int, int], int]) -> None:
    """Record which transactions were decoded, for polls and for the age of what is pending."""
    if not touched:
        return
    connection.execute(
        load("pgtrickle.capture", "sql/queries/note_decoded.sql"),
        {
            "xids": _array(xid for xid, _ in touched),
            "sources": _array(source for _, source in touched),
            "moments": _array(touched.values()),
        },
    )


def _array(numbers: Iterable[int]) -> str:
    """An array as text: there can be many thousands, which psycopg would convert one by one."""
    return f"{{{','.join(map(str, numbers))}}}"


def _store_position(connection: Connection, before: Lsn, position: Lsn) -> None:
    """Move the position; the row lock keeps any other session from storing the same changes."""
    changed = connection.execute(
        "update pgtrickle.pgt_wal set decoded_lsn = %s::pg_lsn where decoded_lsn = %s::pg_lsn",
        (str(position), str(before)),
    )
    assert changed.rowcount == 1, "another session has stored these changes"


@dataclass(frozen=True, slots=True)
class _ServerState:
    """The stored position, the encoding of what is read, and a recent transaction id."""

    stored: Lsn
    encoding: str
    next_xid: int


def _state(connection: Connection) -> _ServerState:
    """Raises SlotLost unless the slot has every change that is not decoded yet."""
    gap, stored, encoding, next_xid = only(
        connection,
        "select pgtrickle_internal.slot_gap(), (select w.decoded_lsn::text from pgtrickle.pgt_wal w),"
        " pgtrickle_internal.log_encoding()::text, pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
    )
    if gap is not None:
        raise SlotLost(gap)
    return _ServerState(Lsn.parse(stored), encoding, next_xid)


def only(connection: Connection, query: LiteralString) -> tuple[Any, ...]:
    """The only row of a query."""
    row = connection.execute(query).fetchone()
    assert row is not None
    return row
