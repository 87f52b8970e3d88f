"""WAL capture of one database, as the threads of a process share it: one connection for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.wal.late_rows import copy_to_window, late_sources
from pgtrickle.capture.wal.slot import START, Lsn
from pgtrickle.capture.wal.store import ROUND_MESSAGES, Round, decode_round
from pgtrickle.changes.source_window import Start
from pgtrickle.model.errors import Busy
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, connect
from pgtrickle.postgres.liveness import close_quietly
from pgtrickle.postgres.locking import is_contention

WAIT_SECONDS: Final = 60.0
"""How long a thread waits for another one that decodes."""
ADVANCE_SECONDS: Final = 1.0
"""How often the slot is advanced at most: the server writes its position to disk each time."""


@dataclass(slots=True)
class WalCapture:
    """Decodes the slot of a database. Connects when it is first used. Thread-safe."""

    dsn: str = field(repr=False)
    round_messages: int = ROUND_MESSAGES
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _connection: Connection | None = None
    _position: Lsn = START
    _advanced_at: float = 0.0

    def catch_up(self) -> None:
        """Decode every transaction that has committed before this call, whatever has been flushed."""
        with self._using() as connection:
            row = connection.execute(
                "select pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text"
            ).fetchone()
            assert row is not None
            target, flushed = Lsn.parse(row[0]), Lsn.parse(row[1])
            if target <= self._position:
                return
            if flushed < target:
                _flush(connection)
            while self._position < target:
                self._decode(connection)

    def decode(self) -> frozenset[RelationId]:
        """Decode one round if the log has grown, and advance the slot now and then."""
        with self._using() as connection:
            found = self._decode(connection)
            if time.monotonic() - self._advanced_at >= ADVANCE_SECONDS:
                _advance(connection)
                self._advanced_at = time.monotonic()
            return found.sources

    def late(self, sources: Collection[RelationId], snapshot: Frontier) -> frozenset[RelationId]:
        """The sources that have rows which were stored after a snapshot was taken."""
        with self._using() as connection:
            return late_sources(connection, sources, snapshot)

    def window(self, starts: Sequence[Start], until: Frontier, number: int) -> RelationName:
        """Copy the windows of a source into one of its window tables, where every snapshot sees them."""
        with self._using() as connection:
            return copy_to_window(connection, starts, until, number)

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """The connection in autocommit mode, for what must not overlap with decoding in this process."""
        with self._using() as connection:
            yield connection

    def forget(self) -> None:
        """Forget the position: it belonged to another slot or server."""
        with self._lock:
            self._position = START

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        """Forget a connection whose state is unknown: another server may answer next time."""
        if self._connection is not None:
            close_quietly(self._connection)
        self._connection = None

    def _decode(self, connection: Connection) -> Round:
        found = decode_round(connection, self._position, self.round_messages)
        self._position = max(self._position, found.position)
        if found.has_more:
            # a round counts what it skips, so the next one must not begin with it
            _advance(connection)
        return found

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise Busy("the log is being decoded", hint="try again in a moment")
        try:
            if self._connection is None or self._connection.closed:
                self._position = START
                self._connection = connect(self.dsn, autocommit=True, application_name="pgtrickle wal")
            yield self._connection
        except DatabaseError as error:
            is_lost = self._connection is None or self._connection.broken or self._connection.closed
            self._disconnect()
            if is_lost or is_contention(error):
                # nobody's stream table is at fault: another session reads the slot, or ours was ended
                raise Busy("the log cannot be decoded now", hint="try again in a moment") from error
            raise
        except BaseException:
            self._disconnect()
            raise
        finally:
            self._lock.release()


def _flush(connection: Connection) -> None:
    """Force the log to disk: decoding reads no further, and others may commit before it is there."""
    with connection.transaction():
        connection.execute("set local synchronous_commit = local")
        connection.execute("select pg_logical_emit_message(true, 'pgtrickle', '')")


def _advance(connection: Connection) -> None:
    """Release the log before the stored position."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(pgtrickle_internal.wal_lock(), 0)")
        connection.execute(
            "select pg_replication_slot_advance(w.slot, w.decoded_lsn) from pgtrickle.pgt_wal w"
            " join pg_replication_slots s on s.slot_name = w.slot and s.wal_status <> 'lost'"
            " where s.confirmed_flush_lsn < w.decoded_lsn"
        )
