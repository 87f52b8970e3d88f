"""A connection to each attached database, and what is remembered of it between two polls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.attached.log.server import LogState
from pgtrickle.capture.attached.origin import connect_to_origin
from pgtrickle.capture.wal.slot import START, Lsn
from pgtrickle.model.attached import AttachedDatabase
from pgtrickle.model.errors import AttachedFailed, Busy, PgTrickleError
from pgtrickle.postgres.connection import Connection, DatabaseError, connect

PATIENCE_SECONDS: Final = 30.0
"""How long to wait for another thread that follows the same database."""

Resolve = Callable[[str], str | None]
"""Returns the address of a database in the configuration of the process."""


@dataclass(slots=True)
class Place:
    """A connection to an attached database, used by one thread at a time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None
    described_at: float = float("-inf")
    followed_at: float = float("-inf")
    dsn: str = field(default="", repr=False)
    state: LogState | None = None
    """Of a database whose log is decoded: what the log was like at the last poll."""
    looked: Lsn = START
    """Up to where nothing in this log is news."""
    waits_until: float = float("-inf")
    """Until when no table is read there, because running transactions were in the way."""

    def close(self) -> None:
        """Close the connection; another one is opened when it is needed."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(DatabaseError):
                connection.close()

    def roll_back(self) -> None:
        """End the transaction there, if the connection still lives."""
        if self.connection is not None:
            try:
                self.connection.rollback()
            except DatabaseError:
                self.close()


class Places:
    """The places of the attached databases of one database. Safe to use from many threads."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._lock = threading.Lock()
        self._places: dict[str, Place] = {}

    def find(self, database: AttachedDatabase) -> Place:
        """The place of a database, which another thread may be using."""
        with self._lock:
            return self._places.setdefault(database.alias, Place())

    @contextmanager
    def using(self, database: AttachedDatabase) -> Iterator[Place]:
        """The place of a database, for one thread."""
        place = self.find(database)
        if not place.lock.acquire(timeout=PATIENCE_SECONDS):
            raise Busy(f"the attached database {database.alias} does not answer", hint="try again")
        try:
            yield place
        finally:
            place.lock.release()

    def connect(self, place: Place, database: AttachedDatabase) -> Connection:
        """The connection of a place, opened if there is none."""
        dsn = self._resolve(database.reference)
        if dsn is None:
            raise AttachedFailed(
                f"the attached database {database.alias} cannot be reached: this process knows no database"
                f" {database.reference}",
                hint="add it to the configuration of the sidecar, under that name",
            )
        if place.connection is None or place.connection.closed or place.dsn != dsn:
            place.close()
            try:
                # nothing is installed in the database whose log is decoded
                opens = connect if database.is_decoded else connect_to_origin
                place.connection, place.dsn = opens(dsn, application_name="pgtrickle follow"), dsn
            except PgTrickleError as error:
                raise not_followed(database, error.message) from error
        return place.connection

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            places, self._places = list(self._places.values()), {}
        for place in places:
            place.close()


def not_followed(database: AttachedDatabase, message: str, hint: str | None = None) -> AttachedFailed:
    """The error for a database that cannot be followed."""
    return AttachedFailed(
        f"the attached database {database.alias} cannot be followed: {message}",
        hint=hint
        or "stream tables that read it stay as they are, and are refreshed when it can be reached again",
    )
