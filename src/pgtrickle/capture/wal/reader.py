"""What reads a replication slot, apart from what is done with the transactions that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pgtrickle.capture.wal.pgoutput import Message
from pgtrickle.capture.wal.slot import Lsn


class SlotTaken(Exception):
    """Another session reads the slot."""


class LogReader(Protocol):
    """Reads whole transactions from a slot, in the order of their commits.

    Nothing is lost before it is confirmed: a reader that is opened again begins with the transactions after
    the last confirmed position. Some of them may have been read before.
    """

    @property
    def reached(self) -> Lsn:
        """Every transaction that commits before this position was read."""
        ...

    def read(self, end: Lsn, most: int) -> Iterator[Message | None]:
        """Read transactions that commit before `end`, until there are `most` messages.

        Each is a `Begin`, its changes and a `Commit`. A relation is described before its first row in each
        call. Do not leave the iteration early, or close the reader. Raises SlotTaken, or SlotLost.
        """
        ...

    def confirm(self, position: Lsn) -> None:
        """Let the server remove the log before a position. Everything before it has been stored."""
        ...

    def close(self) -> None:
        """Release the slot."""
        ...
