"""Parses messages of `pgoutput`, the output plugin of logical replication, in version 2 of its protocol.

Messages of which there are many are tuples, which are made fastest. Nothing here knows the catalog. Names and
values stay bytes in the encoding of the connection: they are only compared and passed on.
https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple, TypeAlias


class Unchanged(Enum):
    """A value that is stored outside of its row, did not change, and is therefore not in the log."""

    TOAST = "unchanged"


Value: TypeAlias = bytes | Unchanged | None
Tuple: TypeAlias = tuple[Value, ...]


class Begin(NamedTuple):
    """A transaction begins; its messages come together, in the order of commits.

    `commit_time` counts microseconds since 2000. `xid` has 32 bits.
    """

    commit_lsn: int
    commit_time: int
    xid: int


class Commit(NamedTuple):
    """The end of a transaction; `end_lsn` is the position after its commit record."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation, and whether the replica identity contains it."""

    name: bytes
    type: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns that a relation has when the rows that follow were written."""

    id: int
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    """A row was inserted."""

    relation: int
    new: Tuple


class Update(NamedTuple):
    """A row was updated. `old` is the old row or its key; it is None if no column of the key changed."""

    relation: int
    old: Tuple | None
    new: Tuple


class Delete(NamedTuple):
    """A row was deleted. `old` is the row, or its key with nulls in all other columns."""

    relation: int
    old: Tuple


class Truncate(NamedTuple):
    """Relations were truncated."""

    relations: tuple[int, ...]


class Note(NamedTuple):
    """A message that `pg_logical_emit_message` has written."""

    prefix: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Changes of a transaction follow that has not ended yet."""

    xid: int


@dataclass(frozen=True, slots=True)
class StreamStop:
    """The end of these changes, for now."""


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """A transaction has committed whose changes were sent before."""

    begin: Begin
    commit: Commit


@dataclass(frozen=True, slots=True)
class StreamAbort:
    """A transaction was rolled back whose changes were sent before, or a part of it if the ids differ."""

    xid: int
    part: int


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Note
StreamMessage: TypeAlias = StreamStart | StreamStop | StreamCommit | StreamAbort

_BEGIN: Final = Struct(">QqI")
_COMMIT: Final = Struct(">BQQq")
_COUNT: Final = Struct(">H")
_ID: Final = Struct(">I")
_COLUMN: Final = Struct(">Ii")
_TRUNCATE: Final = Struct(">IB")
_NOTE: Final = Struct(">BQ")
_STREAM_COMMIT: Final = Struct(">IBQQq")
_STREAM_ABORT: Final = Struct(">II")


class UnknownMessage(ValueError):
    """A message that this version of the protocol does not have."""


def parse(data: bytes) -> Message | None:
    """Parse one message; None for messages that carry no change (types, origins)."""
    parser = _PARSERS.get(data[0])
    if parser is None:
        raise UnknownMessage(f"pgoutput sent an unknown message {data[:1]!r}")
    return parser(data)


def is_begin(data: bytes) -> bool:
    """Whether a transaction begins that is sent as a whole."""
    return data[0] == _BEGINS


def parse_stream(data: bytes) -> StreamMessage | None:
    """Parse a message about a transaction that is sent in parts; None if it is another message."""
    match data[:1]:
        case b"S":
            return StreamStart(_id(data, 1))
        case b"E":
            return StreamStop()
        case b"c":
            xid, _, commit_lsn, end_lsn, time = _STREAM_COMMIT.unpack_from(data, 1)
            return StreamCommit(Begin(commit_lsn, time, xid), Commit(commit_lsn, end_lsn))
        case b"A":
            return StreamAbort(*_STREAM_ABORT.unpack_from(data, 1))
    return None


def without_part(data: bytes) -> tuple[int, bytes]:
    """A message between StreamStart and StreamStop: the id of its sub-transaction, and the message itself."""
    return _id(data, 1), data[:1] + data[5:]


def full_xid(xid: int, next_xid: int) -> int:
    """A transaction id of 32 bits with its epoch, given an id of about the same time with its own.

    Ids in the log are less than 2³¹ away. They can be the larger ones: a commit is in the log before any
    snapshot shows it.
    """
    distance = (xid - next_xid) & 0xFFFFFFFF
    return next_xid + (distance if distance < 1 << 31 else distance - (1 << 32))


def _begin(data: bytes) -> Begin:
    return Begin(*_BEGIN.unpack_from(data, 1))


def _commit(data: bytes) -> Commit:
    _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
    return Commit(commit_lsn, end_lsn)


def _insert(data: bytes) -> Insert:
    return Insert(_id(data, 1), _tuple(data, 6)[0])


def _delete(data: bytes) -> Delete:
    return Delete(_id(data, 1), _tuple(data, 6)[0])


def _update(data: bytes) -> Update:
    relation, old, place = _id(data, 1), None, 5
    if data[place : place + 1] in (b"K", b"O"):
        old, place = _tuple(data, place + 1)
    new, _ = _tuple(data, place + 1)
    return Update(relation, old, new)


def _truncate(data: bytes) -> Truncate:
    count, _ = _TRUNCATE.unpack_from(data, 1)
    return Truncate(tuple(_id(data, 6 + 4 * n) for n in range(count)))


def _note(data: bytes) -> Note:
    prefix, rest = data[1 + _NOTE.size :].split(b"\0", 1)
    return Note(prefix, rest[_ID.size :])


def _nothing(data: bytes) -> None:
    return None


def _relation(data: bytes) -> Relation:
    place = data.index(b"\0", 5) + 1
    place = data.index(b"\0", place) + 2
    (count,) = _COUNT.unpack_from(data, place)
    place += 2
    columns = []
    for _ in range(count):
        end = data.index(b"\0", place + 1)
        kind, _ = _COLUMN.unpack_from(data, end + 1)
        columns.append(RelationColumn(data[place + 1 : end], kind, bool(data[place] & 1)))
        place = end + 1 + _COLUMN.size
    return Relation(_id(data, 1), tuple(columns))


def _tuple(data: bytes, place: int) -> tuple[Tuple, int]:
    """The values of a row that begins at a place, and the place after it."""
    (count,) = _COUNT.unpack_from(data, place)
    place += 2
    values: list[Value] = []
    for _ in range(count):
        kind = data[place]
        place += 1
        if kind == 0x74:  # t: as text
            (size,) = _ID.unpack_from(data, place)
            place += 4
            values.append(data[place : place + size])
            place += size
        elif kind == 0x6E:  # n: null
            values.append(None)
        elif kind == 0x75:  # u: unchanged
            values.append(Unchanged.TOAST)
        else:
            raise UnknownMessage(f"pgoutput sent a value of unknown kind {chr(kind)!r}")
    return tuple(values), place


def _id(data: bytes, place: int) -> int:
    value: int = _ID.unpack_from(data, place)[0]
    return value


_BEGINS: Final = ord("B")
_PARSERS: Final[Mapping[int, Callable[[bytes], Message | None]]] = {
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    _BEGINS: _begin,
    ord("C"): _commit,
    ord("R"): _relation,
    ord("T"): _truncate,
    ord("M"): _note,
    ord("Y"): _nothing,
    ord("O"): _nothing,
}
