"""What the broker shares: a snapshot of a database, and the windows that were read in it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pgtrickle.capture.attached.origin import is_kept
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.frontier import Frontier
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.copy_across import copy_blocks


class Unshared(Exception):
    """The broker cannot give what a reader needs; the reader has to read for itself."""


@dataclass(slots=True)
class Counters:
    """How many windows were read for all, how many readers got one that was read before, and bytes read."""

    read: int = 0
    shared: int = 0
    direct: int = 0
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """The change rows of a table since the oldest reader: blocks of a COPY, with these columns."""

    names: tuple[str, ...]
    since: int
    blocks: tuple[bytes, ...]
    rows: int


@dataclass(slots=True)
class Tick:
    """A snapshot of one database, and the windows that were read in it. More can be read while it is open."""

    number: int
    opened_at: float
    snapshot: Frontier
    taken_at: datetime
    place: str
    locked: frozenset[int] = frozenset()
    is_open: bool = True
    windows: dict[int, Window | None] = field(default_factory=dict)
    definitions: dict[tuple[str, str], dict[str, Any] | None] = field(default_factory=dict)


@dataclass(slots=True)
class FollowedServer:
    """The connection of the broker to one database, and the tick that is shared now."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None
    dsn: str = field(default="", repr=False)
    tick: Tick | None = None
    ticks: int = 0
    renewed_at: float = float("-inf")
    entries: dict[int, tuple[int, int, int]] = field(default_factory=dict)


class Windows(Protocol):
    """What reads windows and definitions in a tick: the broker."""

    def window(self, server: FollowedServer, tick: Tick, table: AttachedTable) -> Window:
        """The window of a table."""

    def definition(self, server: FollowedServer, tick: Tick, table: AttachedTable) -> dict[str, Any] | None:
        """The definition of a table."""


@dataclass(frozen=True, slots=True)
class SharedOrigin:
    """A database in the snapshot of a tick, for one reader. Has the windows, but not the rows."""

    broker: Windows
    server: FollowedServer
    tick: Tick
    database: AttachedDatabase
    kept: Mapping[int, Frontier | None]

    @property
    def snapshot(self) -> Frontier:
        """The snapshot up to which the reader follows."""
        return self.tick.snapshot

    @property
    def taken_at(self) -> datetime:
        """When it was taken."""
        return self.tick.taken_at

    @property
    def place(self) -> str:
        """The server it was taken on."""
        return self.tick.place

    def keeps_since(self, table: AttachedTable) -> bool:
        """Whether all changes since the frontier of our copy are there."""
        return is_kept(self.kept, self.database, self.place, table)

    def definition(self, table: AttachedTable) -> dict[str, Any] | None:
        """The definition of a table in the snapshot."""
        return self.broker.definition(self.server, self.tick, table)

    def captured(self, table: AttachedTable) -> tuple[str, ...]:
        """The columns that the window was read with."""
        return self._window(table).names

    def copy_window(
        self, table: AttachedTable, names: Sequence[str], local: Connection, incoming: sql.Identifier
    ) -> int:
        """Copy the change rows; those that the reader has are among them. Returns how many bytes."""
        places = ["xid", "weight", *(f"k{number}" for number in range(1, len(names) + 1))]
        return copy_blocks(self._window(table).blocks, local, incoming, places)

    def copy_rows(self, table: AttachedTable, local: Connection, rows: sql.Identifier) -> None:
        """The broker keeps no rows."""
        raise Unshared

    def _window(self, table: AttachedTable) -> Window:
        return self.broker.window(self.server, self.tick, table)
