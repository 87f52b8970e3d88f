"""Keeps the changes of transactions in progress: a little in memory, the rest in temporary files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from tempfile import SpooledTemporaryFile
from typing import Final

from pgtrickle.capture.wal.pgoutput import Message, Relation, parse

HELD_BYTES: Final = 1 << 20
"""Larger transactions are kept in a file."""
_HEAD: Final = Struct(">II")


@dataclass(slots=True)
class _Open:
    """A transaction in progress, and those of its sub-transactions that were rolled back."""

    file: SpooledTemporaryFile[bytes]
    aborted: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Spool:
    """The transactions in progress that the server has sent parts of."""

    _open: dict[int, _Open] = field(default_factory=dict)

    def add(self, xid: int, part: int, data: bytes) -> None:
        """Keep a message of a transaction, written by one of its sub-transactions."""
        found = self._open.get(xid)
        if found is None:
            found = self._open[xid] = _Open(SpooledTemporaryFile(HELD_BYTES))  # noqa: SIM115
        found.file.write(_HEAD.pack(part, len(data)) + data)

    def abort(self, xid: int, part: int) -> None:
        """Forget a transaction, or what one of its sub-transactions has written."""
        if part == xid:
            self._drop(xid)
        elif xid in self._open:
            self._open[xid].aborted.add(part)

    def take(self, xid: int) -> Iterator[Message | None]:
        """The messages of a transaction that has committed; it is forgotten afterwards."""
        found = self._open.get(xid)
        if found is None:
            return
        found.file.seek(0)
        while head := found.file.read(_HEAD.size):
            part, size = _HEAD.unpack(head)
            message = parse(found.file.read(size))
            # the server describes a relation once in a transaction, also if that part of it is rolled back
            if part not in found.aborted or isinstance(message, Relation):
                yield message
        self._drop(xid)

    def close(self) -> None:
        """Forget everything: it is sent again."""
        for xid in tuple(self._open):
            self._drop(xid)

    def _drop(self, xid: int) -> None:
        found = self._open.pop(xid, None)
        if found is not None:
            found.file.close()
